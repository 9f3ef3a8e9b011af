-- Models of which nothing is claimed until they are resumed, and when the pauses before ended: tasks that waited
-- through one wait anew from then on.
CREATE TABLE pauses (
    model       text   PRIMARY KEY COLLATE "C", -- empty: all models
    since_ms    bigint,                         -- null: it is not paused now
    reason      text,
    ended_at_ms bigint                          -- of the last pause that ended
);
