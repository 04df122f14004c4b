// Reads {statements, queries} from stdin; writes a list of {Columns, Rows}. A session keeps the views.
const {readFileSync} = require('node:fs');
const {Session} = require('chdb');

const {statements, queries} = JSON.parse(readFileSync(0, 'utf8'));
const session = new Session();
// The engine takes one statement at a time. Ours have no semicolon inside.
for (const statement of (statements ?? '').split(/;\s*\n/)) {
	if (statement.replace(/--.*$/gm, '').trim()) {
		session.query(statement);
	}
}
const results = [];
for (const query of queries) {
	const out = session.query(query + ' SETTINGS output_format_json_quote_64bit_integers = 1', 'JSONCompact');
	const {meta, data} = JSON.parse(out);
	results.push({Columns: meta.map(m => m.name), Rows: data});
}
console.log(JSON.stringify(results));
session.cleanup();
