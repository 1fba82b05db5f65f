// Issues X.509 certificates: a private CA, and the serving and client certificates below it.
// Used by `osbext serve --cert-dir`, `osbext certs` and the development control plane.
//
// node-forge builds and encodes the certificate; keys and signatures are Node's own (OpenSSL): forge knows no
// elliptic curves, and its RSA generation is slow. forge never verifies anything here (CVE-2026-33896: it took a
// leaf for a CA); verification is left to Node's TLS.
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
} from 'node:crypto'
import { isIP } from 'node:net'
import forge from 'node-forge'

/** `ec`: ECDSA on P-256, the default; `rsa`: 3072 bits, for clients that cannot read the former. */
export type KeyType = 'ec' | 'rsa'

/** A certificate and its private key, both PEM; the key is PKCS#8. */
export interface Issued {
  readonly certificate: string
  readonly privateKey: string
}

/** When a certificate is good; both ends inclusive (RFC 5280, 4.1.2.5). */
export interface Validity {
  readonly notBefore: Date
  readonly notAfter: Date
}

export interface AuthorityRequest {
  readonly commonName: string
  readonly validity?: Validity
  readonly keyType?: KeyType
}

export interface CertificateRequest {
  /** Kubernetes reads it as the user name of a client certificate. */
  readonly commonName: string
  /** Kubernetes reads them as the groups of a client certificate. */
  readonly organizations?: readonly string[]
  /** DNS names and IP addresses of a serving certificate; which of the two each is, is told from its form. */
  readonly names?: readonly string[]
  readonly usages: readonly ('serverAuth' | 'clientAuth')[]
  readonly validity?: Validity
  readonly keyType?: KeyType
}

const DAY_MS = 24 * 60 * 60 * 1000
/** Backdated so that a neighbour whose clock is behind accepts a certificate issued just now. */
const BACKDATE_MS = 5 * 60 * 1000

/** From five minutes ago until `days` from now. */
export function validFor(days: number): Validity {
  const now = Date.now()
  return { notBefore: new Date(now - BACKDATE_MS), notAfter: new Date(now + days * DAY_MS) }
}

/** A self-signed CA, valid ten years unless told. */
export function issueAuthority(request: AuthorityRequest): Issued {
  const keys = newKeys(request.keyType ?? 'ec')
  return {
    certificate: sealed({
      subject: [commonName(request.commonName)],
      publicKey: keys.publicKey,
      signingKey: keys.privateKey,
      validity: request.validity ?? validFor(3650),
      extensions: [
        { name: 'basicConstraints', cA: true, critical: true },
        { name: 'keyUsage', keyCertSign: true, cRLSign: true, digitalSignature: true, critical: true },
        subjectKeyIdentifier(keys.publicKey),
      ],
    }),
    privateKey: pkcs8(keys.privateKey),
  }
}

/** A leaf below `authority`, valid one year unless told. */
export function issueCertificate(authority: Issued, request: CertificateRequest): Issued {
  const keys = newKeys(request.keyType ?? 'ec')
  const signingKey = createPrivateKey(authority.privateKey)
  const altNames = (request.names ?? []).map(name =>
    isIP(name) ? { type: 7, ip: name } : { type: 2, value: name },
  )
  return {
    certificate: sealed({
      subject: [
        ...(request.organizations ?? []).map(value => ({ ...UTF8, name: 'organizationName', value })),
        commonName(request.commonName),
      ],
      issuer: authority.certificate,
      publicKey: keys.publicKey,
      signingKey,
      validity: request.validity ?? validFor(365),
      extensions: [
        { name: 'basicConstraints', cA: false, critical: true },
        {
          name: 'keyUsage',
          digitalSignature: true,
          keyEncipherment: request.keyType === 'rsa',
          critical: true,
        },
        { name: 'extKeyUsage', ...Object.fromEntries(request.usages.map(usage => [usage, true])) },
        subjectKeyIdentifier(keys.publicKey),
        { name: 'authorityKeyIdentifier', keyIdentifier: keyIdentifier(createPublicKey(signingKey)) },
        ...(altNames.length > 0 ? [{ name: 'subjectAltName', altNames }] : []),
      ],
    }),
    privateKey: pkcs8(keys.privateKey),
  }
}

/** Names may hold what a PrintableString may not (`system:serviceaccount:a:b@c`). */
const UTF8 = { valueTagClass: forge.asn1.Type.UTF8 as unknown as forge.asn1.Class }

function commonName(value: string): forge.pki.CertificateField {
  return { ...UTF8, name: 'commonName', value }
}

interface Sealing {
  readonly subject: forge.pki.CertificateField[]
  /** PEM of the issuing CA; absent when it signs itself. */
  readonly issuer?: string
  readonly publicKey: KeyObject
  readonly signingKey: KeyObject
  readonly validity: Validity
  readonly extensions: object[]
}

// Where a TBSCertificate keeps what forge cannot fill in for an elliptic-curve key (RFC 5280, 4.1).
const TBS_SIGNATURE = 2
const TBS_ISSUER = 3
const TBS_SUBJECT = 5
const TBS_PUBLIC_KEY = 6

const SHA256_WITH_RSA = '1.2.840.113549.1.1.11'

function sealed(sealing: Sealing): string {
  const draft = forge.pki.createCertificate()
  // Positive and without a leading zero octet, 20 octets at most (RFC 5280, 4.1.2.2).
  draft.serialNumber = `4${randomBytes(16).toString('hex').slice(1)}`
  draft.validity.notBefore = sealing.validity.notBefore
  draft.validity.notAfter = sealing.validity.notAfter
  draft.setSubject(sealing.subject)
  draft.setIssuer(sealing.subject)
  draft.setExtensions(sealing.extensions)
  // forge insists on an RSA key and algorithm to encode; both are replaced below.
  draft.siginfo.algorithmOid = SHA256_WITH_RSA
  draft.publicKey = forge.pki.rsa.setPublicKey(new forge.jsbn.BigInteger('3'), new forge.jsbn.BigInteger('3'))
  const tbs = (forge.pki as unknown as { getTBSCertificate(of: object): forge.asn1.Asn1 }).getTBSCertificate(
    draft,
  )
  const algorithm = signatureAlgorithm(sealing.signingKey)
  const fields = children(tbs)
  fields[TBS_SIGNATURE] = algorithm
  fields[TBS_PUBLIC_KEY] = parsed(sealing.publicKey.export({ type: 'spki', format: 'der' }))
  if (sealing.issuer !== undefined) fields[TBS_ISSUER] = subjectOf(sealing.issuer)

  const signature = sign('sha256', encoded(tbs), sealing.signingKey)
  const { Class, Type, create } = forge.asn1
  const certificate = create(Class.UNIVERSAL, Type.SEQUENCE, true, [
    tbs,
    algorithm,
    // The first octet counts the unused bits of the last one: none.
    create(Class.UNIVERSAL, Type.BITSTRING, false, `\0${signature.toString('latin1')}`),
  ])
  return pem('CERTIFICATE', encoded(certificate))
}

function signatureAlgorithm(key: KeyObject): forge.asn1.Asn1 {
  const { Class, Type, create, oidToDer } = forge.asn1
  const oid = (value: string) => create(Class.UNIVERSAL, Type.OID, false, oidToDer(value).getBytes())
  // ecdsa-with-SHA256 has no parameters (RFC 5758, 3.2); sha256WithRSAEncryption has NULL (RFC 4055, 5).
  return create(
    Class.UNIVERSAL,
    Type.SEQUENCE,
    true,
    key.asymmetricKeyType === 'ec'
      ? [oid('1.2.840.10045.4.3.2')]
      : [oid(SHA256_WITH_RSA), create(Class.UNIVERSAL, Type.NULL, false, '')],
  )
}

/** The issuer must repeat its CA's subject byte for byte, so it is taken from there. */
function subjectOf(certificate: string): forge.asn1.Asn1 {
  const der = forge.util.decode64(certificate.replace(/-----[A-Z ]+-----|\s/g, ''))
  const tbs = children(forge.asn1.fromDer(der))[0]
  const subject = tbs && children(tbs)[TBS_SUBJECT]
  if (!subject) throw new Error('the issuing certificate has no subject')
  return subject
}

function subjectKeyIdentifier(key: KeyObject): object {
  const { Class, Type, create, toDer } = forge.asn1
  const octets = create(Class.UNIVERSAL, Type.OCTETSTRING, false, keyIdentifier(key))
  return { id: '2.5.29.14', value: toDer(octets).getBytes() }
}

/** SHA-1 of the public key's bits (RFC 5280, 4.2.1.2, method 1), as forge's binary string. */
function keyIdentifier(key: KeyObject): string {
  const bits = children(parsed(key.export({ type: 'spki', format: 'der' })))[1]?.value
  return createHash('sha1').update(String(bits).slice(1), 'latin1').digest('binary')
}

function newKeys(type: KeyType): { publicKey: KeyObject; privateKey: KeyObject } {
  return type === 'ec'
    ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
    : generateKeyPairSync('rsa', { modulusLength: 3072 })
}

function pkcs8(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString()
}

function children(node: forge.asn1.Asn1): forge.asn1.Asn1[] {
  return Array.isArray(node.value) ? node.value : []
}

function parsed(der: Buffer): forge.asn1.Asn1 {
  // Bit strings stay opaque: forge would otherwise look for ASN.1 inside the key's bits.
  return forge.asn1.fromDer(der.toString('latin1'), { decodeBitStrings: false } as unknown as boolean)
}

function encoded(node: forge.asn1.Asn1): Buffer {
  return Buffer.from(forge.asn1.toDer(node).getBytes(), 'latin1')
}

function pem(label: string, der: Buffer): string {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? []
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`
}
