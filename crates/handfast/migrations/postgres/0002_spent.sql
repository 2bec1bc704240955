-- What may be used once and was: the random ids of states. The primary key is the id alone, so the table can be partitioned
-- by hash of it.
CREATE TABLE handfast_spent (
    id    bytea PRIMARY KEY CHECK (octet_length(id) = 16),
    -- Until then at least the mark is kept.
    until timestamptz NOT NULL
);

CREATE INDEX handfast_spent_until ON handfast_spent (until);
