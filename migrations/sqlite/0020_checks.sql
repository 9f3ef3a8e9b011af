-- The rules on phases, states and kinds as comparisons. For a list of more than two values SQLite builds a table each
-- time it checks the rule, which took more than a third of the time of an insert. What is stored stays as it is, and so
-- does what the rules allow: then their text alone may be changed (https://sqlite.org/lang_altertable.html#otheralter).

PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql,
    'phase IN (''waiting'', ''running'', ''completed'', ''failed'', ''expired'')',
    'phase = ''waiting'' OR phase = ''running'' OR phase = ''completed'' OR phase = ''failed'' OR phase = ''expired''')
    WHERE type = 'table' AND name = 'tasks';
UPDATE sqlite_schema SET sql = replace(sql,
    'kind IN (''remove_file'', ''call_off'', ''look_for_orphans'')',
    'kind = ''remove_file'' OR kind = ''call_off'' OR kind = ''look_for_orphans''')
    WHERE type = 'table' AND name = 'chores';
UPDATE sqlite_schema SET sql = replace(sql,
    'state IN (''waiting'', ''pending'', ''delivered'', ''failed'')',
    'state = ''waiting'' OR state = ''pending'' OR state = ''delivered'' OR state = ''failed''')
    WHERE type = 'table' AND name = 'deliveries';
-- Reads the rules anew.
PRAGMA writable_schema = RESET;
