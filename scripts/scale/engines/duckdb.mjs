// Reads {statements, query} from stdin; writes {Columns, Rows}.
import {DuckDBInstance} from '@duckdb/node-api';
import {readFileSync} from 'node:fs';

const {statements, query} = JSON.parse(readFileSync(0, 'utf8'));
const instance = await DuckDBInstance.create(':memory:');
const connection = await instance.connect();
if (statements) {
	await connection.run(statements);
}
const result = await connection.runAndReadAll(query);
console.log(JSON.stringify({Columns: result.columnNames(), Rows: result.getRowsJson()}));
