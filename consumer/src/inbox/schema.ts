export const POSTGRES_TABLES = `CREATE TABLE IF NOT EXISTS intentwatch_inbox (
  consumer text NOT NULL,
  event_id text NOT NULL,
  handled_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (consumer, event_id)
);
CREATE INDEX IF NOT EXISTS intentwatch_inbox_handled_at ON intentwatch_inbox (handled_at);

-- The newest event of each subject that was handled, for each fact: {"status": {"epoch", "sequence", "atMs"}, …} as JSON.
CREATE TABLE IF NOT EXISTS intentwatch_facts (
  consumer text NOT NULL,
  subject text NOT NULL,
  newest text NOT NULL,
  handled_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (consumer, subject)
);
CREATE INDEX IF NOT EXISTS intentwatch_facts_handled_at ON intentwatch_facts (handled_at);
`;

/** The tables of the inbox in SQLite. Times are milliseconds since 1970. */
export const SQLITE_TABLES = `CREATE TABLE IF NOT EXISTS intentwatch_inbox (
  consumer TEXT NOT NULL,
  event_id TEXT NOT NULL,
  handled_at INTEGER NOT NULL,
  PRIMARY KEY (consumer, event_id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS intentwatch_inbox_handled_at ON intentwatch_inbox (handled_at);

-- The newest event of each subject that was handled, for each fact: {"status": {"epoch", "sequence", "atMs"}, …} as JSON.
CREATE TABLE IF NOT EXISTS intentwatch_facts (
  consumer TEXT NOT NULL,
  subject TEXT NOT NULL,
  newest TEXT NOT NULL,
  handled_at INTEGER NOT NULL,
  PRIMARY KEY (consumer, subject)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS intentwatch_facts_handled_at ON intentwatch_facts (handled_at);
`;
