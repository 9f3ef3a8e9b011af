-- Who this store is: told apart from others that may have used the same result store. A number
-- from 0 to 2^63 - 1, drawn once.

INSERT INTO counters (name, value) VALUES ('identity', random() & 9223372036854775807);
