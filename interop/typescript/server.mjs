// Notebooks, on the official TypeScript SDK (2.x): one factory, served over node:http or over stdio.
//
// Everything is camelCase here: `notebookId` is minted and `notebookId` is asked for. The text form of a minted
// handle is a line of its own (`ID: ...`) instead of a sentence.
//
// The SDK applies no protection to `requestState` by itself and offers two things: a hook that is handed every state
// that comes back, and a codec that can be put into it. The sound mode uses both. The flawed mode uses the hook alone,
// to parse raw JSON, so something called `verify` runs on every retry and verifies nothing.

import { createHash, randomBytes, randomUUID } from 'node:crypto';

import { toNodeHandler } from '@modelcontextprotocol/node';
import {
    acceptedContent,
    createMcpHandler,
    createRequestStateCodec,
    inputRequired,
    McpServer,
    ProtocolError,
    ProtocolErrorCode,
    ResourceNotFoundError,
    ResourceTemplate
} from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import * as z from 'zod';

import { options, serveBehindGate } from './gate.mjs';

const PRINCIPAL_KEY = 'io.modelcontextprotocol/principal';

const chosen = options({
    mode: ['sound', 'flawed'],
    transport: ['http', 'stdio'],
    handle: ['both', 'structured', 'text'],
    principal: ['meta', 'none']
});
const sound = chosen.mode === 'sound';

// --- who is calling, and what they own ---------------------------------------------------------------

function caller(ctx) {
    const user = ctx.http?.authInfo?.extra?.user;
    if (user !== undefined) return user;
    if (chosen.principal === 'none') return 'local';
    const named = ctx.mcpReq._meta?.[PRINCIPAL_KEY];
    // No name, no service: a default user would turn every nameless caller into an owner.
    if (typeof named !== 'string' || named === '') {
        throw new ProtocolError(ProtocolErrorCode.InvalidParams, `_meta names no ${PRINCIPAL_KEY}`);
    }
    return named;
}

// One map for the whole process. The factory below makes a new server for every HTTP request.
const notebooks = new Map();

function find(notebookId, ctx) {
    const who = caller(ctx);
    const notebook = notebooks.get(notebookId);
    if (notebook === undefined) return undefined;
    // FLAW, in flawed mode: the owner was recorded, and is never compared with the caller.
    if (sound && notebook.owner !== who) return undefined;
    return notebook;
}

const say = (text, structuredContent) => ({
    content: [{ type: 'text', text }],
    ...(structuredContent && { structuredContent })
});
const refuse = text => ({ ...say(text), isError: true });
const noNotebook = () => refuse('No such notebook.');
const described = ({ title, colour, owner, pages }) =>
    `Notebook "${title}" (${colour}) of ${owner}: ${pages.join(' / ') || 'no pages'}`;

// --- the state between two rounds --------------------------------------------------------------------

const codec = createRequestStateCodec({
    key: randomBytes(32),
    ttlSeconds: 300,
    bind: ctx => `${ctx.mcpReq.method}\0${caller(ctx)}`
});

// `bind` sees the method and the caller, not the tool's name or its arguments. So those travel inside, as a digest.
const digest = (tool, args) => createHash('sha256').update(JSON.stringify([tool, args])).digest('base64url');

async function state(tool, args, ctx) {
    const claims = { principal: caller(ctx), tool, amount: args.amount, expires: Date.now() + 600_000 };
    if (sound) return codec.mint({ ...claims, asked: digest(tool, args) }, ctx);
    return JSON.stringify(claims);
}

async function parseOnly(text) {
    // FLAW: this is the place for a check of authenticity, and it checks that the JSON is JSON.
    const claims = JSON.parse(text);
    const { principal, amount } = claims;
    if (typeof principal !== 'string' || typeof amount !== 'number') throw new Error('not a state of ours');
    if (!(claims.expires > Date.now())) throw new Error('expired');
    return claims;
}

const answer = z.object({ confirm: z.boolean(), copies: z.number().int().min(1).max(5).optional() });

/** Ask first; on the retry act on what the state says, which is why the state has to be trustworthy. */
async function twoRounds(tool, args, ctx, done) {
    const claims = ctx.mcpReq.requestState();
    const responses = ctx.mcpReq.inputResponses;
    if (claims === undefined || responses?.approval === undefined) {
        const ask = inputRequired.elicit({ message: `${tool}: amount ${args.amount}?`, requestedSchema: answer });
        return inputRequired({ inputRequests: { approval: ask }, requestState: await state(tool, args, ctx) });
    }
    // A state of another request of the same user. The SDK turns whatever a tool throws into a tool error.
    if (sound && claims.asked !== digest(tool, args)) return refuse('Invalid or expired requestState');
    const given = acceptedContent(responses, 'approval', answer);
    return given?.confirm === true ? done(claims, given) : say(`${tool}: not approved, nothing was done.`);
}

const letter = (topic, { principal, amount }) => `Write about ${topic}: ${principal} orders ${amount} sheets.`;

// --- the server --------------------------------------------------------------------------------------

const notebookId = z.string().describe('What createNotebook answered');

function notebookServer() {
    const server = new McpServer(
        { name: 'interop-notebooks', version: '1' },
        { requestState: { verify: sound ? codec.verify : parseOnly } }
    );

    server.registerTool(
        'createNotebook',
        {
            description: 'Create a notebook. It is kept until this process ends.',
            inputSchema: z.object({
                title: z.string().min(1).max(120),
                colour: z.enum(['red', 'green', 'blue']).default('blue')
            }),
            // With an output schema the SDK refuses an answer without structuredContent, which `--handle text` is.
            ...(chosen.handle !== 'text' && { outputSchema: z.object({ notebookId: z.string(), colour: z.string() }) })
        },
        ({ title, colour }, ctx) => {
            const id = `nb-${randomUUID()}`;
            notebooks.set(id, { title, colour, owner: caller(ctx), pages: [] });
            const text = chosen.handle === 'structured' ? 'Notebook ready.' : `Notebook ready.\n\nID: ${id}`;
            return say(text, chosen.handle === 'text' ? undefined : { notebookId: id, colour });
        }
    );

    server.registerTool(
        'readNotebook',
        { description: 'Read a notebook.', inputSchema: z.object({ notebookId }), annotations: { readOnlyHint: true } },
        ({ notebookId }, ctx) => {
            const book = find(notebookId, ctx);
            return book ? say(described(book)) : noNotebook();
        }
    );

    server.registerTool(
        'appendPage',
        {
            description: 'Append a page to a notebook.',
            inputSchema: z.object({
                notebookId,
                text: z.string().min(1).max(500),
                lines: z.number().int().min(1).max(60).optional()
            })
        },
        ({ notebookId, text }, ctx) => {
            const book = find(notebookId, ctx);
            if (!book) return noNotebook();
            book.pages.push(text);
            return say(`Page ${book.pages.length} of "${book.title}" written for ${book.owner}.`);
        }
    );

    // The name gives nothing away; only the hint says that this must not be called.
    server.registerTool(
        'recycleNotebook',
        {
            description: 'Give the paper back.',
            inputSchema: z.object({ notebookId }),
            annotations: { destructiveHint: true }
        },
        () => {
            console.error('DESTRUCTIVE TOOL CALLED recycleNotebook');
            return say('recycleNotebook: done, nothing is left.');
        }
    );

    server.registerTool(
        'orderPaper',
        {
            description: 'Order sheets of paper, after an approval.',
            inputSchema: z.object({ amount: z.number().int().min(1).max(90) })
        },
        (args, ctx) =>
            twoRounds('orderPaper', args, ctx, claims =>
                say(`${claims.tool}: ${claims.amount} sheets ordered for ${claims.principal}.`)
            )
    );

    server.registerPrompt(
        'coverLetter',
        {
            description: 'Write a letter that goes with an order; asks first',
            argsSchema: z.object({ topic: z.string() })
        },
        ({ topic }, ctx) =>
            twoRounds('coverLetter', { topic, amount: 2 }, ctx, claims => ({
                messages: [{ role: 'user', content: { type: 'text', text: letter(topic, claims) } }]
            }))
    );

    server.registerResource(
        'notebook',
        new ResourceTemplate('notebook://{notebookId}', { list: undefined }),
        { description: 'A notebook as text', mimeType: 'text/plain' },
        (uri, { notebookId }, ctx) => {
            const book = find(notebookId, ctx);
            if (!book) throw new ResourceNotFoundError(uri.href);
            return { contents: [{ uri: uri.href, text: described(book) }] };
        }
    );

    return server;
}

// --- serving -----------------------------------------------------------------------------------------

function overHttp() {
    const handler = createMcpHandler(notebookServer, { onerror: error => console.error(error.message) });
    // The SDK's handler verifies no tokens; the gate in front of it does, and hands over who it was.
    serveBehindGate(Number(chosen.port), toNodeHandler(handler));
}

if (chosen.transport === 'stdio') {
    serveStdio(notebookServer, { onerror: error => console.error(error.message) });
} else {
    overHttp();
}
