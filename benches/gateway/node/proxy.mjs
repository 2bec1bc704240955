// What the command of `mcp-proxy` does, line for line, in front of a server over HTTP instead of one over stdio:
// its command starts nothing else, its library can.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Server } from '@modelcontextprotocol/server';
import { proxyServer, resolveVersionNegotiation, startHTTPServer } from 'mcp-proxy';

const [upstream, port] = process.argv.slice(2);
const about = { name: 'mcp-proxy', version: '1.0.0' };
const client = new Client(about, { capabilities: {}, versionNegotiation: resolveVersionNegotiation('auto') });
await client.connect(new StreamableHTTPClientTransport(new URL(upstream)));
const serverCapabilities = client.getServerCapabilities();
const createServer = async () => {
    const server = new Server(client.getServerVersion(), { capabilities: serverCapabilities });
    await proxyServer({ client, server, serverCapabilities });
    return server;
};
await startHTTPServer({ createServer, host: '127.0.0.1', port: Number(port) });
