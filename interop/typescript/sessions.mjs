// A memo for each session, on the official TypeScript SDK (2.x), with the map of id and transport that everybody writes.
//
// A transport of this SDK knows its own id and nothing else, so finding the transport is the author's job, and so is
// asking whose it is. In flawed mode nobody asks. `--unknown 400` answers ids that are not in the map as hand-written
// routers do; the default is what the SDK itself says about a wrong id.

import { randomUUID } from 'node:crypto';

import { NodeStreamableHTTPServerTransport } from '@modelcontextprotocol/node';
import { McpServer } from '@modelcontextprotocol/server';
import * as z from 'zod';

import { options, serveBehindGate } from './gate.mjs';

const chosen = options({ mode: ['flawed', 'sound'], transport: ['http'], unknown: ['404', '400'] });

function memoServer() {
    const server = new McpServer({ name: 'interop-memo', version: '1' });
    let memo = 'Nothing is remembered.';
    const say = text => ({ content: [{ type: 'text', text }] });

    server.registerTool(
        'remember',
        {
            description: 'Remember a text for this session.',
            inputSchema: z.object({ text: z.string() }),
            annotations: { destructiveHint: false }
        },
        ({ text }) => {
            memo = text;
            return say('Remembered.');
        }
    );
    server.registerTool(
        'recall',
        { description: 'Say what this session remembers.', annotations: { readOnlyHint: true } },
        () => say(memo)
    );
    server.registerTool(
        'whoami',
        { description: 'Say whose token this request carries.', annotations: { readOnlyHint: true } },
        ctx => say(ctx.http.authInfo.extra.user)
    );
    return server;
}

const sessions = new Map(); // id -> { transport, owner }

function find(id, user) {
    const session = sessions.get(id);
    // FLAW, in flawed mode: the owner was recorded, and is never compared with the caller.
    if (chosen.mode === 'sound' && session?.owner !== user) return undefined;
    return session;
}

async function begun(owner) {
    const transport = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: id => sessions.set(id, { transport, owner })
    });
    transport.onclose = () => sessions.delete(transport.sessionId);
    await memoServer().connect(transport);
    return transport;
}

function refuse(res) {
    const [status, code, message] =
        chosen.unknown === '404'
            ? [404, -32001, 'Session not found']
            : [400, -32000, 'Bad Request: No valid session ID provided'];
    res.writeHead(status, { 'content-type': 'application/json' });
    res.end(JSON.stringify({ jsonrpc: '2.0', error: { code, message }, id: null }));
}

serveBehindGate(Number(chosen.port), async (req, res) => {
    const { user } = req.auth.extra;
    const id = req.headers['mcp-session-id'];
    // Without an id there is a new transport, which refuses everything but `initialize`.
    const transport = id === undefined ? await begun(user) : find(id, user)?.transport;
    if (transport === undefined) return refuse(res);
    await transport.handleRequest(req, res);
});
