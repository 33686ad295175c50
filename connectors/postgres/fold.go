package postgres

import "context"

// warnFolded warns of citext columns where the server compares them in another
// way than we do: with the C locale it folds A to Z alone, we fold every letter.
// Rows whose keys differ in the case of other letters would be one for us.
func (v *survey) warnFolded(ctx context.Context, s *session, tables []*table) {
	known, plain := false, false
	for _, t := range tables {
		for i := range t.columns {
			if !t.layout.Columns[i].Fold {
				continue
			}
			if !known {
				// An error is that of an encoding without the letter, which has nothing to fold.
				lower, err := s.text(ctx, "SELECT pg_catalog.lower('É')")
				known, plain = true, err == nil && lower == "É"
			}
			if plain {
				v.warn(t.String(), "", "column %s is citext in a database of the C locale, where only A to Z compare without case; here all letters do: "+
					"values that differ in the case of other letters, as é and É, are one key", t.layout.Columns[i].Name)
			}
		}
	}
}
