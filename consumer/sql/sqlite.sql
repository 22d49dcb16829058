-- The tables of intentwatch-consumer's inbox in SQLite. Generated from consumer/src/inbox/schema.ts.
CREATE TABLE IF NOT EXISTS intentwatch_inbox (
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
