-- Following the graph reads thousands of these rows for a question, and nothing of them but what these indexes hold.
DROP INDEX relationships_source_idx;
DROP INDEX relationships_target_idx;
CREATE INDEX relationships_source_idx ON relationships (tenant_id, source_id, target_id, id) INCLUDE (type, chunk_id);
CREATE INDEX relationships_target_idx ON relationships (tenant_id, target_id, source_id, id) INCLUDE (type, chunk_id);
DROP INDEX event_links_target_idx;
CREATE INDEX event_links_source_idx ON event_links (tenant_id, source_id, target_id) INCLUDE (state, type);
CREATE INDEX event_links_target_idx ON event_links (tenant_id, target_id, source_id) INCLUDE (state, type);
