-- One row for each handle. Times are microseconds since 1970; the times of ends are exclusive.
CREATE TABLE handfast_handles (
    digest             BLOB PRIMARY KEY CHECK (length(digest) = 32),
    subject_key_id     BLOB CHECK (subject_key_id IS NULL OR length(subject_key_id) = 8),
    subject_key        BLOB CHECK (subject_key IS NULL OR length(subject_key) = 32),
    tenant             TEXT CHECK (tenant <> ''),
    client             TEXT CHECK (client <> ''),
    object_type        TEXT NOT NULL CHECK (object_type <> ''),
    object_ref         TEXT NOT NULL CHECK (object_ref <> ''),
    object_version     TEXT NOT NULL CHECK (object_version <> ''),
    -- Separated by spaces, at least one. A scope has no space in it (RFC 6749).
    scopes             TEXT NOT NULL CHECK (scopes <> ''),
    policy_version     TEXT NOT NULL CHECK (policy_version <> ''),
    created_at         INTEGER NOT NULL,
    expires_at         INTEGER NOT NULL CHECK (expires_at > created_at),
    idle_micros        INTEGER CHECK (idle_micros > 0),
    -- When it ends unless it is used before; never after expires_at.
    ends_at            INTEGER NOT NULL CHECK (ends_at <= expires_at),
    revoked_at         INTEGER,
    revocation_reason  TEXT CHECK ((revocation_reason IS NULL) = (revoked_at IS NULL)),
    revocation_receipt TEXT CHECK ((revocation_receipt IS NULL) = (revoked_at IS NULL)),
    CHECK ((subject_key IS NULL) = (subject_key_id IS NULL))
) STRICT, WITHOUT ROWID;

-- Bulk revocation by owner.
CREATE INDEX handfast_handles_owner ON handfast_handles (subject_key, tenant, client, expires_at);
-- Purging.
CREATE INDEX handfast_handles_ends ON handfast_handles (ends_at);
CREATE INDEX handfast_handles_revoked ON handfast_handles (revoked_at) WHERE revoked_at IS NOT NULL;
-- The newest record, which tells a clock that is wrong; and bulk revocation by time.
CREATE INDEX handfast_handles_created ON handfast_handles (created_at);
