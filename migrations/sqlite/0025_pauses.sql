-- Models of which nothing is claimed until they are resumed, and when the pauses before ended: tasks that waited
-- through one wait anew from then on.
CREATE TABLE pauses (
    model       TEXT    PRIMARY KEY NOT NULL, -- empty: all models
    since_ms    INTEGER,                      -- null: it is not paused now
    reason      TEXT,
    ended_at_ms INTEGER                       -- of the last pause that ended
) STRICT, WITHOUT ROWID;
