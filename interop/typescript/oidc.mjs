// An authorization server that is not ours: oidc-provider, with resource indicators and JWT access tokens (RFC 8707,
// RFC 9068). Its users are whoever the client says that they are (`login_hint`), so that no browser and no person is
// needed; all else is the authorization code flow with PKCE as a client walks it.
//
//   oidc.mjs --audience URI [--port N] USER...
//
// prints `issuer: URL`, then for each user `USER: TOKEN`, and goes on answering.
import { createHash, generateKeyPairSync, randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { parseArgs } from 'node:util';

import { Provider, errors } from 'oidc-provider';

const { values, positionals } = parseArgs({
    options: { audience: { type: 'string' }, port: { type: 'string', default: '0' } },
    allowPositionals: true
});
const { audience } = values;
if (!audience || positionals.length === 0) {
    console.error('usage: oidc.mjs --audience URI [--port N] USER...');
    process.exit(2);
}

const CLIENT = 'interop-client';
const CALLBACK = 'http://127.0.0.1/callback';
const SCOPE = 'use';

const server = createServer();
await new Promise(listening => server.listen(Number(values.port), '127.0.0.1', listening));
const issuer = `http://127.0.0.1:${server.address().port}`;

const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const provider = new Provider(issuer, {
    clients: [
        {
            client_id: CLIENT,
            application_type: 'native',
            token_endpoint_auth_method: 'none',
            grant_types: ['authorization_code'],
            response_types: ['code'],
            redirect_uris: [CALLBACK]
        }
    ],
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'ES256', kid: 'interop' }] },
    cookies: { keys: [randomBytes(32).toString('hex')] },
    // Only so that a client may want ES256 at all: there are no ID tokens here.
    enabledJWA: { idTokenSigningAlgValues: ['ES256'] },
    clientDefaults: { id_token_signed_response_alg: 'ES256' },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
    features: {
        devInteractions: { enabled: false },
        resourceIndicators: {
            enabled: true,
            defaultResource: () => audience,
            getResourceServerInfo: (_, resource) => {
                if (resource !== audience) throw new errors.InvalidTarget();
                return {
                    scope: SCOPE,
                    audience,
                    accessTokenTTL: 3600,
                    accessTokenFormat: 'jwt',
                    jwt: { sign: { alg: 'ES256' } }
                };
            }
        }
    },
    ttl: { AccessToken: 3600, AuthorizationCode: 60, Grant: 3600, Interaction: 600, Session: 3600 }
});

// Where a person would log in and agree.
async function interact(request, response) {
    const { prompt, params, session } = await provider.interactionDetails(request, response);
    let result = { login: { accountId: params.login_hint } };
    if (prompt.name === 'consent') {
        const grant = new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
        grant.addResourceScope(audience, SCOPE);
        result = { consent: { grantId: await grant.save() } };
    }
    await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: true });
}

const answer = provider.callback();
server.on('request', (request, response) => {
    if (!request.url.startsWith('/interaction/')) return answer(request, response);
    interact(request, response).catch(error => {
        response.statusCode = 500;
        response.end(`${error}\n`);
    });
});

// What the client of this user does, and the browser for it.
async function tokenOf(user) {
    const verifier = randomBytes(32).toString('base64url');
    const challenge = createHash('sha256').update(verifier).digest('base64url');
    const asked = { client_id: CLIENT, response_type: 'code', redirect_uri: CALLBACK, scope: SCOPE, resource: audience };
    const proof = { code_challenge: challenge, code_challenge_method: 'S256' };
    const cookies = new Map();
    let at = new URL(`${issuer}/auth?${new URLSearchParams({ ...asked, ...proof, login_hint: user })}`);
    for (let step = 0; at.origin === issuer; step += 1) {
        const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
        const response = await fetch(at, { redirect: 'manual', headers: { cookie } });
        for (const line of response.headers.getSetCookie()) {
            const [name, value] = line.split(';')[0].split(/=(.*)/s);
            cookies.set(name, value);
        }
        const next = response.headers.get('location');
        if (!next || step > 10) throw new Error(`${at.pathname}: ${response.status} ${await response.text()}`);
        at = new URL(next, at);
    }
    const code = at.searchParams.get('code');
    if (!code) throw new Error(`no code: ${at.search}`);
    const form = { grant_type: 'authorization_code', code, redirect_uri: CALLBACK, client_id: CLIENT };
    const body = new URLSearchParams({ ...form, code_verifier: verifier, resource: audience });
    const response = await fetch(`${issuer}/token`, { method: 'POST', body });
    const told = await response.json();
    if (!told.access_token) throw new Error(`no token: ${JSON.stringify(told)}`);
    return told.access_token;
}

console.log(`issuer: ${issuer}`);
for (const user of positionals) {
    console.log(`${user}: ${await tokenOf(user)}`);
}
