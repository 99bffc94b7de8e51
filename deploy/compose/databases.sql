-- The second database, beside the one that the image creates.
CREATE DATABASE dagster;
