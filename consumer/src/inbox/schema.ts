/** The tables of the inbox in Postgres. */
export const POSTGRES_TABLES = `CREATE TABLE IF NOT EXISTS intentwatch_inbox (
  consumer text NOT NULL,
  event_id text NOT NULL,
  handled_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (consumer, event_id)
);
CREATE INDEX IF NOT EXISTS intentwatch_inbox_handled_at ON intentwatch_inbox (handled_at);

-- The newest event that was handled of each subject.
CREATE TABLE IF NOT EXISTS intentwatch_subjects (
  consumer text NOT NULL,
  subject text NOT NULL,
  sequence bigint NOT NULL,
  occurred_at timestamptz NOT NULL,
  handled_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (consumer, subject)
);
CREATE INDEX IF NOT EXISTS intentwatch_subjects_handled_at ON intentwatch_subjects (handled_at);
`;

/** The tables of the inbox in SQLite. Times are milliseconds since 1970. */
export const SQLITE_TABLES = `CREATE TABLE IF NOT EXISTS intentwatch_inbox (
  consumer TEXT NOT NULL,
  event_id TEXT NOT NULL,
  handled_at INTEGER NOT NULL,
  PRIMARY KEY (consumer, event_id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS intentwatch_inbox_handled_at ON intentwatch_inbox (handled_at);

-- The newest event that was handled of each subject.
CREATE TABLE IF NOT EXISTS intentwatch_subjects (
  consumer TEXT NOT NULL,
  subject TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  occurred_at INTEGER NOT NULL,
  handled_at INTEGER NOT NULL,
  PRIMARY KEY (consumer, subject)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS intentwatch_subjects_handled_at ON intentwatch_subjects (handled_at);
`;
