// Reads {statements, queries} from stdin; writes a list of {Columns, Rows}.
import {DuckDBInstance} from '@duckdb/node-api';
import {readFileSync} from 'node:fs';

const {statements, queries} = JSON.parse(readFileSync(0, 'utf8'));
const instance = await DuckDBInstance.create(':memory:');
const connection = await instance.connect();
if (statements) {
	await connection.run(statements);
}
const results = [];
for (const query of queries) {
	const result = await connection.runAndReadAll(query);
	results.push({Columns: result.columnNames(), Rows: result.getRowsJson()});
}
console.log(JSON.stringify(results));
