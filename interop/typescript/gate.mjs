// What stands in front of the SDK over HTTP: a listener on the loopback, bearer tokens, and saying where we listen. And the
// options, whose first choice is the default.

import { createServer } from 'node:http';
import { parseArgs } from 'node:util';

import { localhostHostValidation, localhostOriginValidation, toNodeHandler } from '@modelcontextprotocol/node';
import {
    getOAuthProtectedResourceMetadataUrl,
    oauthMetadataResponse,
    OAuthError,
    OAuthErrorCode,
    requireBearerAuth
} from '@modelcontextprotocol/server';

const USERS = { 'alice-token': 'alice', 'bob-token': 'bob' };

/** The options of a server, and `port`. Choices that there are not end the process. */
export function options(choices) {
    const named = Object.keys(choices).map(name => [name, { type: 'string', default: choices[name][0] }]);
    const { values } = parseArgs({ options: { ...Object.fromEntries(named), port: { type: 'string', default: '0' } } });
    for (const [name, allowed] of Object.entries(choices)) {
        if (!allowed.includes(values[name])) {
            console.error(`--${name} takes one of: ${allowed.join(', ')}`);
            process.exit(2);
        }
    }
    return values;
}

/** Hands every request for /mcp that carries a good token to `answer(req, res)`, with `req.auth` as the SDK reads it. */
export function serveBehindGate(port, answer) {
    const listener = createServer();
    const [hostIsLocal, originIsLocal] = [localhostHostValidation(), localhostOriginValidation()];
    listener.listen(port, '127.0.0.1', () => {
        const url = new URL(`http://127.0.0.1:${listener.address().port}/mcp`);
        const admit = gate(url);
        listener.on('request', async (req, res) => {
            if (!hostIsLocal(req, res) || !originIsLocal(req, res)) return;
            try {
                const auth = await admit(req);
                if (auth instanceof Response) return await toNodeHandler({ fetch: () => auth })(req, res);
                req.auth = auth;
                await answer(req, res);
            } catch (error) {
                console.error(error.message);
                if (!res.headersSent) res.writeHead(500).end();
            }
        });
        process.stdout.write(`listening on ${url}\n`);
    });
}

/** Who it is, or the answer to somebody who is not let in. */
function gate(url) {
    const bearer = requireBearerAuth({
        verifier: { verifyAccessToken: token => verified(token, url) },
        expectedResource: url,
        resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(url)
    });
    const metadata = { resourceServerUrl: url, oauthMetadata: issuer(url) };
    return async ({ method, headers, url: target }) => {
        const request = new Request(new URL(target, url), { method, headers });
        const document = oauthMetadataResponse(request, metadata);
        if (document !== undefined) return document;
        if (new URL(request.url).pathname !== url.pathname) return new Response(null, { status: 404 });
        return bearer(request);
    };
}

// A name that the challenge can point to; nothing in a test run fetches it.
function issuer(url) {
    return {
        issuer: `${url}/issuer`,
        authorization_endpoint: `${url}/issuer/authorize`,
        token_endpoint: `${url}/issuer/token`,
        response_types_supported: ['code']
    };
}

async function verified(token, resource) {
    const user = USERS[token];
    if (user === undefined) throw new OAuthError(OAuthErrorCode.InvalidToken, 'unknown token');
    // One OAuth client for both users, so that a server which binds to the client id alone does not look bound.
    const expiresAt = Math.floor(Date.now() / 1000) + 3600;
    return { token, clientId: 'interop-client', scopes: [], expiresAt, resource, extra: { user } };
}
