// The official TypeScript client on the server of `flows.py`: `flows_client.mjs URL REVISION` does what a client can do, and
// prints one line for each thing, the same ones whatever stands in between.

import { Client, LOG_LEVEL_META_KEY, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const [url, revision] = process.argv.slice(2);
const modern = revision >= '2026-07-28';
const item = 'test://item/1';
const told = (what, ...values) => console.log(`${what}:`, ...values.map(value => JSON.stringify(value)));

const client = new Client(
    { name: 'flows-client', version: '1.0.0' },
    { capabilities: { elicitation: {} }, versionNegotiation: { mode: modern ? 'auto' : 'legacy' } }
);
client.setRequestHandler('elicitation/create', async request => {
    told('asked', request.params.message);
    return { action: 'accept', content: { colour: 'green' } };
});
client.setNotificationHandler('notifications/message', ({ params }) => told('log', params.level, params.data));
let updated;
const update = new Promise(resolve => (updated = resolve));
client.setNotificationHandler('notifications/resources/updated', ({ params }) => {
    if (params.uri === item) updated(true);
});
client.onerror = error => {
    // The answer to what was cancelled, which comes or does not.
    if (!error.message.includes('unknown message ID')) told('error', error.message);
};

const text = result => (result.isError ? 'error' : result.content[0].text);
const call = (name, args = {}, options = undefined, meta = undefined) =>
    client.callTool({ name, arguments: args, ...(meta && { _meta: meta }) }, options);
const pause = () => new Promise(resolve => setTimeout(resolve, 200, false));

async function updates() {
    if (modern) {
        const subscription = await client.listen({ resourceSubscriptions: [item] });
        told('listening', subscription.honoredFilter);
        await call('touch', { uri: item });
        told('update', await update);
        return await subscription.close();
    }
    await client.subscribeResource({ uri: item });
    // It comes by a stream of its own, which may not be open yet.
    do await call('touch', { uri: item });
    while (!(await Promise.race([update, pause()])));
    told('update', true);
}

async function cancel() {
    const stop = new AbortController();
    const lingering = call('linger', {}, { signal: stop.signal }).catch(error => error.name);
    await call('lingers');
    stop.abort('enough');
    await lingering;
    told('cancelled', text(await call('was_cancelled')));
}

const transport = new StreamableHTTPClientTransport(new URL(url));
await client.connect(transport);
told('revision', client.getNegotiatedProtocolVersion(), client.getServerVersion()?.name, client.getInstructions());
told('tools', (await client.listTools()).tools.map(tool => tool.name));
const opened = await call('open_case', { title: 'a leak' });
const id = opened.structuredContent.case_id;
told('case', text(opened).split(id).length - 1, id.length > 20);
told('shown', text(await call('show_case', { case_id: id })).replace(id, 'CASE'));
told('unknown', await call('no_such_tool').then(text, error => error.message));
const onprogress = ({ progress, total, message }) => told('progress', progress, total, message);
told('count', text(await call('count', { to: 3 }, { onprogress })));
if (!modern) await client.setLoggingLevel('info');
told('tell', text(await call('tell', {}, undefined, modern && { [LOG_LEVEL_META_KEY]: 'info' })));
told('paint', text(await call('paint')));
told('much', text(await call('write_much', { letters: 3_000_000 })).length);
told('long', text(await call('read_much', { text: 'x'.repeat(1_500_000) })));
told('resources', (await client.listResources()).resources.map(found => found.uri));
told('templates', (await client.listResourceTemplates()).resourceTemplates.map(found => found.uriTemplate));
told('read', (await client.readResource({ uri: item })).contents[0].text);
told('nothing', await client.readResource({ uri: 'test://nothing' }).catch(error => [error.code, error.message]));
told('prompts', (await client.listPrompts()).prompts.map(prompt => prompt.name));
told('prompt', (await client.getPrompt({ name: 'greet', arguments: { name: 'Ada' } })).messages[0].content.text);
for (const ref of [{ type: 'ref/prompt', name: 'greet' }, { type: 'ref/resource', uri: 'test://item/{name}' }]) {
    told('completion', (await client.complete({ ref, argument: { name: 'name', value: 'A' } })).completion.values);
}
await updates();
await cancel();
if (!modern) await transport.terminateSession();
await client.close();
told('over');
