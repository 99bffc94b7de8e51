DROP TABLE retrieval_log;
