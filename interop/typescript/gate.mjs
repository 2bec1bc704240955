// What stands in front of the SDK over HTTP: a listener on the loopback, bearer tokens, and saying where we listen.

import { createServer } from 'node:http';

import { localhostHostValidation, localhostOriginValidation, toNodeHandler } from '@modelcontextprotocol/node';
import {
    getOAuthProtectedResourceMetadataUrl,
    oauthMetadataResponse,
    OAuthError,
    OAuthErrorCode,
    requireBearerAuth
} from '@modelcontextprotocol/server';

const USERS = { 'alice-token': 'alice', 'bob-token': 'bob' };

/** Hands every request for /mcp that carries a good token to `answer(request, auth, extra)`. */
export function serveBehindGate(port, answer) {
    const listener = createServer();
    listener.listen(port, '127.0.0.1', () => {
        const url = new URL(`http://127.0.0.1:${listener.address().port}/mcp`);
        const gate = requireBearerAuth({
            verifier: { verifyAccessToken: token => verified(token, url) },
            expectedResource: url,
            resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(url)
        });
        const metadata = { resourceServerUrl: url, oauthMetadata: issuer(url) };
        const guarded = toNodeHandler({
            fetch: async (request, extra) => {
                const document = oauthMetadataResponse(request, metadata);
                if (document !== undefined) return document;
                if (new URL(request.url).pathname !== url.pathname) return new Response(null, { status: 404 });
                const auth = await gate(request);
                return auth instanceof Response ? auth : answer(request, auth, extra);
            }
        });
        const [hostIsLocal, originIsLocal] = [localhostHostValidation(), localhostOriginValidation()];
        listener.on('request', (req, res) => {
            if (hostIsLocal(req, res) && originIsLocal(req, res)) guarded(req, res);
        });
        console.log(`listening on ${url}`);
    });
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
