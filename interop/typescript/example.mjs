// Starts one of the official example servers from npm, or a server that somebody published there, unchanged.
//
// They listen on fixed ports, on every interface, and talk to stdout about it. For a test they have to take a free
// port on the loopback and say one line once they accept connections, so that is arranged before they are loaded.
// They ask nobody who they are. With `--gate` there is a proxy in front of them that does, and tells them nothing.

import { Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { serveBehindGate } from './gate.mjs';

// package file, and what it wants to hear for each of the transports it knows
const EXAMPLES = {
    'node-everything': { file: '@modelcontextprotocol/server-everything/dist/index.js', http: ['streamableHttp'], stdio: ['stdio'] },
    'node-debug': { file: '@modelcontextprotocol/server-debug/dist/index.js', http: [], stdio: ['--stdio'] },
    'node-memory': { file: '@modelcontextprotocol/server-memory/dist/index.js', stdio: [] },
    'node-v1-sessions': { file: '@modelcontextprotocol/sdk/dist/esm/examples/server/simpleStreamableHttp.js', http: [] },
    'node-v1-stateless': {
        file: '@modelcontextprotocol/sdk/dist/esm/examples/server/simpleStatelessStreamableHttp.js',
        http: []
    },
    debugger: { file: '@debugmcp/mcp-debugger/dist/cli.mjs', http: ['http'], stdio: ['stdio'] },
    taskmanager: { file: '@kazuph/mcp-taskmanager/dist/index.js', stdio: [] }
};

const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
        transport: { type: 'string', default: 'http' },
        port: { type: 'string', default: '0' },
        gate: { type: 'boolean', default: false }
    }
});
const example = EXAMPLES[positionals[0]];
const words = example?.[values.transport];
if (words === undefined) {
    const transports = ({ http, stdio }) => [http && 'http', stdio && 'stdio'].filter(Boolean).join(', ');
    const known = Object.keys(EXAMPLES).map(name => `${name} (${transports(EXAMPLES[name])})`);
    console.error(`known examples: ${known.join(', ')}`);
    process.exit(2);
}

if (values.transport === 'http') {
    const listen = Server.prototype.listen;
    Server.prototype.listen = function (...theirs) {
        Server.prototype.listen = listen;
        const ready = theirs.findLast(value => typeof value === 'function');
        if (values.gate) {
            serveBehindGate(Number(values.port), (req, res) => this.emit('request', req, res));
            ready?.call(this);
            return this;
        }
        return listen.call(this, Number(values.port), '127.0.0.1', () => {
            process.stdout.write(`listening on http://127.0.0.1:${this.address().port}/mcp\n`);
            ready?.call(this);
        });
    };
    console.log = console.error;
}

// Two of them keep a file. A name of its own for each process means that every start is a first start.
process.env.MEMORY_FILE_PATH ??= join(tmpdir(), `interop-memory-${process.pid}.jsonl`);
process.env.TASK_MANAGER_FILE_PATH ??= join(tmpdir(), `interop-tasks-${process.pid}.json`);

const file = new URL(`node_modules/${example.file}`, import.meta.url);
process.argv = [process.argv[0], file.pathname, ...words];
await import(file);
