import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { connect, createServer, type TLSSocket } from 'node:tls'
import t from 'tap'
import { issueAuthority, issueCertificate, type KeyType } from '../../../certs/issue.ts'

for (const keyType of ['ec', 'rsa'] satisfies KeyType[]) {
  t.test(`${keyType}: Node's TLS accepts server and client on both sides`, async t => {
    const ca = issueAuthority({ commonName: 'test-ca', keyType })
    const server = issueCertificate(ca, {
      commonName: 'osbext',
      names: ['osbext.osbext-system.svc', 'localhost', '127.0.0.1'],
      usages: ['serverAuth'],
      keyType,
    })
    const client = issueCertificate(ca, {
      commonName: 'system:serviceaccount:team-a:robot@1',
      organizations: ['a,b', 'grün'],
      usages: ['clientAuth'],
      keyType,
    })
    const listener = createServer({
      ca: ca.certificate,
      cert: server.certificate,
      key: server.privateKey,
      requestCert: true,
      rejectUnauthorized: true,
    })
    listener.listen(0, '127.0.0.1')
    await once(listener, 'listening')
    t.teardown(() => listener.close())
    const accepted = once(listener, 'secureConnection') as Promise<[TLSSocket]>
    const socket = connect({
      port: (listener.address() as { port: number }).port,
      host: '127.0.0.1',
      servername: 'osbext.osbext-system.svc',
      ca: ca.certificate,
      cert: client.certificate,
      key: client.privateKey,
    })
    t.teardown(() => socket.destroy())
    await once(socket, 'secureConnect')
    t.equal(socket.authorized, true)
    const [peer] = await accepted
    const subject = peer.getPeerCertificate().subject
    t.equal(subject.CN, 'system:serviceaccount:team-a:robot@1')
    t.same(subject.O, ['a,b', 'grün'])
  })
}

t.test('what a certificate says of itself', async t => {
  const ca = issueAuthority({ commonName: 'test-ca' })
  const authority = new X509Certificate(ca.certificate)
  t.equal(authority.ca, true)
  const leaf = new X509Certificate(
    issueCertificate(ca, {
      commonName: 'leaf',
      names: ['a.example', '::1'],
      usages: ['clientAuth', 'serverAuth'],
      validity: { notBefore: new Date('2026-01-01T00:00:00Z'), notAfter: new Date('2026-02-01T00:00:00Z') },
    }).certificate,
  )
  t.equal(leaf.ca, false)
  t.equal(leaf.issuer, 'CN=test-ca')
  t.equal(leaf.subjectAltName, 'DNS:a.example, IP Address:0:0:0:0:0:0:0:1')
  t.same(leaf.keyUsage, ['1.3.6.1.5.5.7.3.2', '1.3.6.1.5.5.7.3.1'])
  t.equal(leaf.validFrom, 'Jan  1 00:00:00 2026 GMT')
  t.equal(leaf.validTo, 'Feb  1 00:00:00 2026 GMT')
  t.ok(leaf.checkIssued(authority))
  t.ok(leaf.verify(authority.publicKey))
})
