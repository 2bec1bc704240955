// Releases that are asked about in two rounds, on the official TypeScript SDK (2.x), with its codec as its documentation shows it.
//
// The page is docs/servers/input-required.md of modelcontextprotocol/typescript-sdk, "Carry state across rounds" and "Protect
// requestState with the codec": a key, a lifetime, `verify` among the server's options, and a payload that says which step was
// reached. In flawed mode that is all. The codec has one more option, `bind`, which that page does not name. The sound mode
// uses it, and has the request in the payload, because `bind` sees neither the tool nor its arguments.

import { createHash } from 'node:crypto';

import { toNodeHandler } from '@modelcontextprotocol/node';
import {
    acceptedContent,
    createMcpHandler,
    createRequestStateCodec,
    inputRequired,
    McpServer
} from '@modelcontextprotocol/server';
import * as z from 'zod';

import { options, serveBehindGate } from './gate.mjs';

const chosen = options({ mode: ['flawed', 'sound'], transport: ['http'] });
const sound = chosen.mode === 'sound';

const codec = createRequestStateCodec({
    key: crypto.getRandomValues(new Uint8Array(32)),
    ttlSeconds: 600,
    ...(sound && { bind: ctx => `${ctx.mcpReq.method}\0${ctx.http.authInfo.extra.user}` })
});

const digest = (tool, args) => createHash('sha256').update(JSON.stringify([tool, args])).digest('base64url');
const say = text => ({ content: [{ type: 'text', text }] });
const confirmation = z.object({ confirm: z.boolean() });
const channel = z.object({ channel: z.enum(['stable', 'beta']) });
const ask = (message, requestedSchema) => inputRequired.elicit({ message, requestedSchema });

/** Confirm, then pick a channel, then do it. */
async function confirmThenPick(tool, args, ctx, done) {
    const state = ctx.mcpReq.requestState();
    // In sound mode a state says what was asked about, and there is one from the first question on.
    const asked = sound && { asked: digest(tool, args) };
    if (sound && state !== undefined && state.asked !== asked.asked) {
        return { ...say('Invalid or expired requestState'), isError: true };
    }
    const responses = ctx.mcpReq.inputResponses;
    const questions = async (inputRequests, step) =>
        inputRequired({ inputRequests, ...(step && { requestState: await codec.mint({ step, ...asked }, ctx) }) });
    // FLAW, in flawed mode: confirmed was something, by somebody. Nothing says that it was this.
    if (state?.step !== 'confirmed') {
        // FLAW, in flawed mode: an answer is believed that came with the first call, before anything was asked.
        const mayAnswer = !sound || state?.step === 'asked';
        if (!mayAnswer || acceptedContent(responses, 'confirm', confirmation)?.confirm !== true) {
            return questions({ confirm: ask(`Really ${tool}?`, confirmation) }, sound && 'asked');
        }
        return questions({ channel: ask('Which channel?', channel) }, 'confirmed');
    }
    const picked = acceptedContent(responses, 'channel', channel);
    if (picked === undefined) return questions({ channel: ask('Which channel?', channel) }, 'confirmed');
    return say(`${done} on ${picked.channel}, for ${ctx.http.authInfo.extra.user}.`);
}

function releaseServer() {
    const server = new McpServer(
        { name: 'interop-releases', version: '1' },
        { requestState: { verify: codec.verify } }
    );
    server.registerTool(
        'tag-release',
        { description: 'Tag a release, after a confirmation', inputSchema: z.object({ title: z.string().max(120) }) },
        (args, ctx) => confirmThenPick('tag-release', args, ctx, `Tagged ${args.title}`)
    );
    server.registerTool(
        'warm-cache',
        { description: 'Warm the cache, after a confirmation', inputSchema: z.object({ region: z.string().max(120) }) },
        (args, ctx) => confirmThenPick('warm-cache', args, ctx, `Warmed ${args.region}`)
    );
    return server;
}

const handler = createMcpHandler(releaseServer, { onerror: error => console.error(error.message) });
serveBehindGate(Number(chosen.port), toNodeHandler(handler));
