package main

// Claim states how an event relates to the events of its subject that were handled before. isStale: a newer one about the
// same fact was; isRecordStale: a newer status or update was, each of which has the whole record.
type Claim struct {
	fact          string
	isStale       bool
	isRecordStale bool
}

// Change sets columns of one row of a table; its key has up to two parts.
type Change struct {
	Table string         `json:"table"`
	Key   [2]string      `json:"key"`
	Set   map[string]any `json:"set"`
}

// Tables hold the facts of the events, one for each kind of fact. They follow from the changes that the inbox has stored.
type Tables map[string]map[[2]string]map[string]any

func (tables Tables) apply(changes []Change) {
	for _, change := range changes {
		if tables[change.Table] == nil {
			tables[change.Table] = map[[2]string]map[string]any{}
		}
		row := tables[change.Table][change.Key]
		if row == nil {
			row = map[string]any{}
			tables[change.Table][change.Key] = row
		}
		for column, value := range change.Set {
			row[column] = value
		}
	}
}

// handle gives the changes that an event of any kind requests: they are stored together with the event's id. In whatever
// order events arrive, the tables are the same in the end.
func handle(event Event, claim Claim) ([]Change, error) {
	data, subject := event.Data, event.Data.Subject.ID
	changes := []Change{}
	change := func(table string, key [2]string, set map[string]any) {
		changes = append(changes, Change{table, key, set})
	}
	// A status and an update have the whole record. An update that overtakes a status has the newer record, not its status.
	if (claim.fact == "status" || claim.fact == "update") && !claim.isRecordStale {
		set := map[string]any{"subject": subject, "destination_tx": data.Transfer.Destination.TxHash}
		change("subjects", [2]string{subject}, set)
	}
	if claim.isStale {
		return changes, nil
	}
	switch claim.fact {
	case "status":
		change("subjects", [2]string{subject}, map[string]any{"subject": subject, "status": data.Status})
	case "proof":
		change("proofs", [2]string{subject, data.Proof.Payment}, map[string]any{
			"subject": subject, "payment": data.Proof.Payment, "verdict": wordOf(event), "tx_hash": data.Proof.TxHash,
		})
	case "reminder":
		// It applies while the status of the subject is the one that it names.
		set := map[string]any{"subject": subject, "reminder": wordOf(event), "status": data.Status}
		change("reminders", [2]string{subject}, set)
	case "route":
		set := map[string]any{"subject": subject, "status": data.Status, "output": data.Record["output"]}
		change("routes", [2]string{subject}, set)
	case "notice":
		set := map[string]any{"event_id": event.ID, "subject": subject, "type": event.Type}
		change("notices", [2]string{event.ID}, set)
	}
	return changes, nil
}
