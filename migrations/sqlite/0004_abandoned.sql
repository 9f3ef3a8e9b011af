-- What attempts kept of tasks that ended without a result: work that may go on elsewhere and that nobody
-- wants, until it has been called off.

CREATE TABLE abandoned (
    task  TEXT PRIMARY KEY NOT NULL,
    model TEXT NOT NULL,
    kept  TEXT NOT NULL
) STRICT;
