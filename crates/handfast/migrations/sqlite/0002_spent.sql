-- What may be used once and was: the random ids of states. Times are microseconds since 1970.
CREATE TABLE handfast_spent (
    id    BLOB PRIMARY KEY CHECK (length(id) = 16),
    -- Until then at least the mark is kept.
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX handfast_spent_until ON handfast_spent (until);
