// A certified authorization server on loopback: `node oauth_server.mjs MODULE PORT TOKEN_SECONDS`.
//
// MODULE is the file of `oidc-provider`. Every event that the tests count becomes one line on standard output. Login
// and consent are the provider's own forms. SIGUSR2 begins and ends an outage, in which every answer is HTTP 503.

import { pathToFileURL } from 'node:url';

const [modulePath, port, tokenSeconds] = process.argv.slice(2);
const { default: Provider } = await import(pathToFileURL(modulePath));

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [
    {
      client_id: 'robot',
      client_secret: 'robot-secret-0123456789',
      grant_types: ['client_credentials'],
      response_types: [],
      redirect_uris: [],
      scope: 'tickets archive',
    },
    {
      client_id: 'desktop',
      application_type: 'native',
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'],
      redirect_uris: ['http://127.0.0.1/callback'],
    },
    {
      client_id: 'ticket-server',
      client_secret: 'ticket-server-secret-0123456789',
      grant_types: [],
      response_types: [],
      redirect_uris: [],
    },
  ],
  cookies: { keys: ['only for tests'] },
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: true },
    introspection: { enabled: true, allowedPolicy: (ctx, client) => client.clientId === 'ticket-server' },
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (ctx, resource) => ({
        scope: 'tickets archive admin',
        audience: resource,
        accessTokenFormat: 'opaque',
        accessTokenTTL: Number(tokenSeconds),
      }),
    },
    revocation: { enabled: true },
  },
  pkce: { required: () => true },
  rotateRefreshToken: true,
  scopes: ['openid', 'offline_access', 'tickets', 'archive', 'admin'],
});

const tell = (event, details = '') => console.log(`event ${event} ${details}`);
provider.on('registration_create.success', (ctx, client) => tell('registered', client.clientId));
provider.on('authorization.error', (ctx, error) => tell('authorization-error', error.error));
provider.on('grant.error', (ctx, error) => tell('grant-error', `${error.error} ${error.error_detail ?? ''}`));
provider.on('grant.revoked', () => tell('grant-revoked'));
provider.on('grant.success', (ctx) => {
  const { grant_type: type, scope, resource } = ctx.oidc.body;
  tell('granted', `${type} scope=${scope ?? ''} resource=${resource ?? ''}`);
});

let isOut = false;
process.on('SIGUSR2', () => {
  isOut = !isOut;
  tell(isOut ? 'outage-begins' : 'outage-ends');
});
provider.use(async (ctx, next) => {
  if (isOut) {
    ctx.status = 503;
    ctx.body = 'maintenance';
    return;
  }
  await next();
});
provider.listen(Number(port), '127.0.0.1', () => tell('listening'));
