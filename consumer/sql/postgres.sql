-- The tables of intentwatch-consumer's inbox in Postgres. Generated from consumer/src/inbox/schema.ts.
CREATE TABLE IF NOT EXISTS intentwatch_inbox (
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
