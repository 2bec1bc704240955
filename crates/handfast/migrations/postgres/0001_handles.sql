-- One row for each handle. The primary key is the digest alone, so the table can be partitioned by hash of it.
CREATE TABLE handfast_handles (
    digest             bytea PRIMARY KEY CHECK (octet_length(digest) = 32),
    subject_key_id     bytea CHECK (octet_length(subject_key_id) = 8),
    subject_key        bytea CHECK (octet_length(subject_key) = 32),
    tenant             text CHECK (tenant <> ''),
    client             text CHECK (client <> ''),
    object_type        text NOT NULL CHECK (object_type <> ''),
    object_ref         text NOT NULL CHECK (object_ref <> ''),
    object_version     text NOT NULL CHECK (object_version <> ''),
    -- Separated by spaces, at least one. A scope has no space in it (RFC 6749).
    scopes             text NOT NULL CHECK (scopes <> ''),
    policy_version     text NOT NULL CHECK (policy_version <> ''),
    created_at         timestamptz NOT NULL,
    expires_at         timestamptz NOT NULL CHECK (expires_at > created_at),
    idle_micros        bigint CHECK (idle_micros > 0),
    -- When it ends unless it is used before; never after expires_at.
    ends_at            timestamptz NOT NULL CHECK (ends_at <= expires_at),
    revoked_at         timestamptz,
    revocation_reason  text CHECK ((revocation_reason IS NULL) = (revoked_at IS NULL)),
    revocation_receipt text CHECK ((revocation_receipt IS NULL) = (revoked_at IS NULL)),
    CHECK ((subject_key IS NULL) = (subject_key_id IS NULL))
);

-- Bulk revocation by owner.
CREATE INDEX handfast_handles_owner ON handfast_handles (subject_key, tenant, client, expires_at);
-- Purging.
CREATE INDEX handfast_handles_ends ON handfast_handles (ends_at);
CREATE INDEX handfast_handles_revoked ON handfast_handles (revoked_at) WHERE revoked_at IS NOT NULL;
