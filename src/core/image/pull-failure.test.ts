import fc from "fast-check"
import { expect, test } from "vitest"
import type { PullFailure } from "#api/v1alpha1/alternateimagesource/index.ts"
import { createRegistries, type Fault } from "#cluster-sim/physics/node/registries.ts"
import { classify } from "./pull-failure.ts"

const digest = `sha256:${"0123456789abcdef".repeat(4)}`

/**
 * Messages of kubelets and container runtimes, as they word them. IMAGE, REPOSITORY, HOST and TAG are what the image is
 * made of.
 */
const messages: Record<string, PullFailure> = {
  // containerd 1.6.
  'failed to pull and unpack image "IMAGE": failed to resolve reference "IMAGE": failed to do request: Head "https://HOST/v2/PATH/manifests/TAG": dial tcp 127.0.0.1:9: connect: connection refused':
    "Unreachable",
  'rpc error: code = Unknown desc = failed to pull and unpack image "IMAGE": failed to resolve reference "IMAGE": failed to do request: Head "https://HOST/v2/PATH/manifests/TAG": dial tcp: lookup LABEL: no such host':
    "Unreachable",
  'failed to pull and unpack image "IMAGE": failed to resolve reference "IMAGE": failed to do request: Head "https://HOST/v2/PATH/manifests/TAG": dial tcp: lookup HOST on 10.96.0.10:53: server misbehaving':
    "Unreachable",
  'failed to pull and unpack image "IMAGE": failed to resolve reference "IMAGE": failed to do request: Head "https://HOST/v2/PATH/manifests/TAG": EOF':
    "Unreachable",
  'failed to pull and unpack image "IMAGE": failed to resolve reference "IMAGE": pulling from host HOST failed with status code [manifests TAG]: 503 Service Unavailable':
    "Unreachable",
  [`failed to pull and unpack image "IMAGE": failed to copy: httpReadSeeker: failed open: unexpected status code https://HOST/v2/PATH/blobs/${digest}: 500 Internal Server Error`]:
    "Unreachable",
  // The token server could not be reached: nothing was refused.
  'failed to pull and unpack image "IMAGE": failed to resolve reference "IMAGE": failed to authorize: failed to fetch anonymous token: Get "https://HOST/token?scope=repository%3APATH%3Apull&service=HOST": dial tcp 203.0.113.7:443: connect: connection refused':
    "Unreachable",
  'failed to pull and unpack image "IMAGE": failed to resolve reference "IMAGE": failed to do request: Head "https://HOST/v2/PATH/manifests/TAG": dial tcp 203.0.113.7:443: i/o timeout':
    "Timeout",
  'failed to pull and unpack image "IMAGE": failed to resolve reference "IMAGE": failed to do request: Head "https://HOST/v2/PATH/manifests/TAG": net/http: TLS handshake timeout':
    "Timeout",
  'rpc error: code = Canceled desc = failed to pull and unpack image "IMAGE": context canceled': "Timeout",
  'rpc error: code = DeadlineExceeded desc = failed to pull and unpack image "IMAGE": failed to resolve reference "IMAGE": failed to do request: Head "https://HOST/v2/PATH/manifests/TAG": context deadline exceeded':
    "Timeout",
  'failed to pull and unpack image "IMAGE": failed to resolve reference "IMAGE": failed to do request: Head "https://HOST/v2/PATH/manifests/TAG": x509: certificate signed by unknown authority':
    "TLS",
  'failed to pull and unpack image "IMAGE": failed to resolve reference "IMAGE": failed to do request: Head "https://HOST/v2/PATH/manifests/TAG": tls: failed to verify certificate: x509: certificate signed by unknown authority (possibly because of "x509: invalid signature: parent certificate cannot sign this kind of certificate" while trying to verify candidate authority certificate "HOST")':
    "TLS",
  'failed to pull and unpack image "IMAGE": failed to resolve reference "IMAGE": failed to do request: Head "https://HOST/v2/PATH/manifests/TAG": tls: failed to verify certificate: x509: cannot verify signature: insecure algorithm SHA1-RSA':
    "TLS",
  'failed to pull and unpack image "IMAGE": failed to resolve reference "IMAGE": failed to do request: Head "https://HOST/v2/PATH/manifests/TAG": remote error: tls: handshake failure':
    "TLS",
  'failed to pull and unpack image "IMAGE": failed to resolve reference "IMAGE": failed to do request: Head "https://HOST/v2/PATH/manifests/TAG": http: server gave HTTP response to HTTPS client':
    "TLS",
  'failed to pull and unpack image "IMAGE": failed to resolve reference "IMAGE": pulling from host HOST failed with status code [manifests TAG]: 401 Unauthorized':
    "Denied",
  'failed to pull and unpack image "IMAGE": failed to resolve reference "IMAGE": failed to authorize: failed to fetch oauth token: unexpected status: 401 Unauthorized':
    "Denied",
  'failed to pull and unpack image "IMAGE": failed to resolve reference "IMAGE": pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed':
    "Denied",
  'rpc error: code = NotFound desc = failed to pull and unpack image "IMAGE": failed to resolve reference "IMAGE": IMAGE: not found':
    "NotFound",
  [`failed to pull and unpack image "IMAGE": failed to copy: httpReadSeeker: failed open: content at https://HOST/v2/PATH/manifests/${digest} not found: not found`]:
    "NotFound",
  'rpc error: code = NotFound desc = failed to pull and unpack image "IMAGE": no match for platform in manifest: not found':
    "NoPlatform",
  [`failed to pull and unpack image "IMAGE": failed to copy: httpReadSeeker: failed open: unexpected status code https://HOST/v2/PATH/manifests/${digest}: 429 Too Many Requests - Server message: toomanyrequests: You have reached your pull rate limit. You may increase the limit by authenticating and upgrading: https://www.docker.com/increase-rate-limit`]:
    "RateLimited",
  [`rpc error: code = Unknown desc = failed to pull and unpack image "IMAGE": failed to extract layer ${digest}: write /var/lib/containerd/tmpmounts/containerd-mount252943319/lib/x509/signature.so: no space left on device: unknown`]:
    "DiskFull",
  // containerd 1.7 and 2.x.
  'failed to pull and unpack image "IMAGE": failed to resolve reference "IMAGE": unexpected status from HEAD request to https://HOST/v2/PATH/manifests/TAG: 403 Forbidden':
    "Denied",
  'failed to pull and unpack image "IMAGE": failed to resolve image: unexpected status from HEAD request to https://HOST/v2/PATH/manifests/TAG: 502 Bad Gateway':
    "Unreachable",
  'failed to pull and unpack image "IMAGE": failed to resolve image: unexpected status from GET request to https://HOST/v2/PATH/manifests/TAG: 429 Too Many Requests':
    "RateLimited",
  'failed to pull and unpack image "IMAGE": failed to copy: httpReadSeeker: failed open: unexpected status from GET request to https://HOST/v2/PATH/blobs/TAG: 403 Forbidden\ntoomanyrequests: Rate exceeded':
    "RateLimited",
  'failed to pull and unpack image "IMAGE": failed to copy: httpReadSeeker: failed open: unexpected status from GET request to https://HOST/v2/PATH/blobs/TAG: 403 Forbidden: SignatureDoesNotMatch: The request signature we calculated does not match the one you provided':
    "Denied",
  [`failed to pull and unpack image "IMAGE": image verifier bindir blocked pull of IMAGE with digest ${digest} for reason: verifier check rejected image (exit code 1): `]:
    "SignatureRejected",
  [`failed to pull and unpack image "IMAGE": blocking pull of IMAGE with digest ${digest}: image verifier bindir returned error: context deadline exceeded`]:
    "SignatureRejected",
  // Harbor, which keeps back what its policy forbids.
  'failed to pull and unpack image "IMAGE": failed to resolve reference "IMAGE": unexpected status from HEAD request to https://HOST/v2/PATH/manifests/TAG: 412 Precondition Failed':
    "SignatureRejected",
  'failed to pull and unpack image "IMAGE": unexpected status from GET request to https://HOST/v2/PATH/manifests/TAG: 412 Precondition Failed: PROJECTPOLICYVIOLATION: The image is not signed by cosign.':
    "SignatureRejected",
  'failed to pull and unpack image "IMAGE": failed to resolve image: unexpected status from HEAD request to https://HOST/v2/PATH/manifests/TAG: 400 Bad Request':
    "UnknownFailure",
  // CRI-O.
  "rpc error: code = Unknown desc = Error reading manifest TAG in REPOSITORY: manifest unknown: manifest unknown":
    "NotFound",
  "initializing source docker://IMAGE: reading manifest TAG in REPOSITORY: manifest unknown": "NotFound",
  "initializing source docker://IMAGE: reading manifest TAG in REPOSITORY: name unknown: repository name not known to registry":
    "NotFound",
  'initializing source docker://IMAGE: (Mirrors also failed: [mirror.example.com/PATH:TAG: pinging container registry mirror.example.com: Get "https://mirror.example.com/v2/": x509: certificate has expired or is not yet valid]): IMAGE: reading manifest TAG in REPOSITORY: manifest unknown':
    "NotFound",
  "initializing source docker://IMAGE: reading manifest TAG in REPOSITORY: toomanyrequests: You have reached your unauthenticated pull rate limit.":
    "RateLimited",
  "rpc error: code = Unknown desc = Requesting bearer token: invalid status code from registry 403 (Forbidden)":
    "Denied",
  "initializing source docker://IMAGE: Requesting bearer token: invalid status code from registry 503 (Service Unavailable)":
    "Unreachable",
  "Error reading manifest TAG in REPOSITORY: errors:\ndenied: requested access to the resource is denied\nunauthorized: authentication required\n":
    "Denied",
  "initializing source docker://IMAGE: unable to retrieve auth token: invalid username/password: unauthorized: incorrect username or password":
    "Denied",
  'initializing source docker://IMAGE: pinging container registry HOST: Get "https://HOST/v2/": dial tcp 203.0.113.7:443: connect: no route to host':
    "Unreachable",
  'error pinging docker registry HOST: Get "https://HOST/v2/": proxyconnect tcp: dial tcp: lookup LABEL: Temporary failure in name resolution':
    "Unreachable",
  'choosing image instance: no image found in manifest list for architecture arm64, variant "v8", OS linux':
    "NoPlatform",
  'choosing an image from manifest list docker://IMAGE: no image found in image index for architecture "arm64", variant "v8", OS "linux"':
    "NoPlatform",
  'Image architecture mismatch: image uses "amd64", expecting "arm64"': "NoPlatform",
  "copying system image from manifest list: Source image rejected: A signature was required, but no signature exists":
    "SignatureRejected",
  "Source image rejected: Running image docker://IMAGE is rejected by policy.": "SignatureRejected",
  'Source image rejected: Required email alice@example.com not found (got ["bob@example.com"])': "SignatureRejected",
  "Source image rejected: reading signatures: dial tcp 203.0.113.7:443: i/o timeout": "SignatureRejected",
  'writing blob: adding layer with blob "TAG": Error processing tar file(exit status 1): write /app: no space left on device':
    "DiskFull",
  "image pull failed for IMAGE because the registry is unavailable: pinging container registry HOST: not found":
    "Unreachable",
  "image pull failed for IMAGE because the signature validation failed: no space left on device": "SignatureRejected",
  // cri-dockerd.
  'rpc error: code = Unknown desc = Error response from daemon: Get "https://HOST/v2/": net/http: request canceled while waiting for connection (Client.Timeout exceeded while awaiting headers)':
    "Timeout",
  "rpc error: code = Unknown desc = Error response from daemon: manifest for IMAGE not found: manifest unknown: manifest unknown":
    "NotFound",
  "rpc error: code = Unknown desc = Error response from daemon: pull access denied for REPOSITORY, repository does not exist or may require 'docker login': denied: requested access to the resource is denied":
    "Denied",
  'rpc error: code = Unknown desc = Error response from daemon: Head "https://HOST/v2/PATH/manifests/TAG": Forbidden':
    "Denied",
  'rpc error: code = Unknown desc = Error response from daemon: Get "https://HOST/v2/PATH/manifests/TAG": no basic auth credentials':
    "Denied",
  "rpc error: code = Unknown desc = Error response from daemon: no matching manifest for linux/arm64/v8 in the manifest list entries":
    "NoPlatform",
  "rpc error: code = Unknown desc = Error response from daemon: toomanyrequests: You have reached your pull rate limit.":
    "RateLimited",
  "rpc error: code = Unknown desc = error pulling image configuration: received unexpected HTTP status: 530":
    "Unreachable",
  "rpc error: code = Unknown desc = failed to register layer: Error processing tar file(exit status 1): write /app.rpm: no space left on device":
    "DiskFull",
  // What none of them explains.
  "": "UnknownFailure",
  "rpc error: code = Unknown desc = failed to mount: mkdir /var/lib/containerd/x: permission denied": "UnknownFailure",
  'failed to pull and unpack image "IMAGE": failed to extract layer: input/output error: unknown': "UnknownFailure",
}

type Image = { host: string; path: string; tag: string }

const worded = (message: string, { host, path, tag }: Image) =>
  message
    .replaceAll("IMAGE", `${host}/${path}:${tag}`)
    .replaceAll("REPOSITORY", `${host}/${path}`)
    .replaceAll("LABEL", host.replace(/:.*/, ""))
    .replaceAll("HOST", host)
    .replaceAll("PATH", path)
    .replaceAll("TAG", tag)

const backOff = (image: Image, message: string) =>
  `Back-off pulling image "${image.host}/${image.path}:${image.tag}": ErrImagePull: ${message}`

const plain: Image = { host: "registry.example.com", path: "team/app", tag: "v1" }

for (const [message, failure] of Object.entries(messages))
  test(`${failure}: ${message.slice(-100)}`, () => {
    expect(classify("ErrImagePull", worded(message, plain))).toBe(failure)
    expect(classify("ImagePullBackOff", backOff(plain, worded(message, plain)))).toBe(failure)
  })

test("however an image is called, the class is that of what happened", () => {
  const bad = fc.constantFrom(
    "signature",
    "cosign",
    "policy",
    "x509",
    "certificate",
    "denied",
    "unauthorized",
    "toomanyrequests",
    "eof",
    "unknown",
    "not-found",
    "404",
    "429",
    "503",
    "manifest",
    "timeout",
    "in",
  )
  const image = fc.record({
    host: fc.oneof(
      bad.map(word => `${word}.example.com`),
      bad.map(word => `${word}:5000`),
      fc.constant("[::1]:5000"),
    ),
    path: fc.array(bad, { minLength: 1, maxLength: 3 }).map(parts => parts.join("/")),
    tag: bad,
  })
  fc.assert(
    fc.property(fc.constantFrom(...Object.entries(messages)), image, ([message, failure], image) => {
      expect(classify("ErrImagePull", worded(message, image))).toBe(failure)
      expect(classify("ImagePullBackOff", backOff(image, worded(message, image)))).toBe(failure)
    }),
    { numRuns: 3000 },
  )
})

test("the kubelet may not say more than that it waits", () => {
  expect(classify("ImagePullBackOff", 'Back-off pulling image "registry.example.com/denied:x509"')).toBe(
    "UnknownFailure",
  )
})

const nobodysFault: [reason: string, message: string][] = [
  ["InvalidImageName", 'Failed to apply default image tag "A": couldn\'t parse image name: not found'],
  ["ErrImageNeverPull", "Container image is not present with pull policy of Never"],
  ["ImageInspectError", "connection refused"],
  ["ContainerCreating", ""],
  ["PodInitializing", ""],
  ["CrashLoopBackOff", "back-off 10s restarting failed container: connection refused"],
  ["CreateContainerConfigError", 'secret "x" not found'],
  ["constructor", "not found"],
  ["", "not found"],
  // The node's own.
  ["ErrImagePull", "pull QPS exceeded"],
  ["ImagePullBackOff", 'Back-off pulling image "a": ErrImagePull: pull QPS exceeded'],
  [
    "ErrImagePull",
    'rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial unix /run/containerd/containerd.sock: connect: connection refused"',
  ],
  ["ErrImagePull", "rpc error: code = Unavailable desc = error reading from server: EOF"],
]
for (const [reason, message] of nobodysFault)
  test(`${reason} is none: ${message}`, () => expect(classify(reason, message)).toBeUndefined())

test("reasons that say it all", () => {
  expect(classify("RegistryUnavailable", "")).toBe("Unreachable")
  expect(classify("SignatureValidationFailed", "connection refused")).toBe("SignatureRejected")
  const message =
    'Back-off pulling image "a": SignatureValidationFailed: image pull failed for a because the signature validation failed: connection refused'
  expect(classify("ImagePullBackOff", message)).toBe("SignatureRejected")
})

test("what simulated nodes say is understood", () => {
  const faults: [Fault, PullFailure][] = [
    [{ kind: "refused" }, "Unreachable"],
    [{ kind: "unreachable" }, "Unreachable"],
    [{ kind: "no-such-host" }, "Unreachable"],
    [{ kind: "reset" }, "Unreachable"],
    [{ kind: "timeout" }, "Timeout"],
    [{ kind: "tls" }, "TLS"],
    [{ kind: "plain-http" }, "TLS"],
    [{ kind: "status", status: 404 }, "NotFound"],
    [{ kind: "status", status: 403 }, "Denied"],
    [{ kind: "status", status: 429 }, "RateLimited"],
    [{ kind: "status", status: 500 }, "Unreachable"],
    ...(["none", "basic", "token", "scope"] as const).map((challenge): [Fault, PullFailure] => [
      { kind: "status", status: 401, challenge },
      "Denied",
    ]),
  ]
  const image = { host: "quay.io", repository: "team/app", tag: "v1", name: "quay.io/team/app:v1" }
  for (const [fault, failure] of faults) {
    const pull = createRegistries([{ host: "quay.io", fault }]).pull(image, { now: 0, platform: "linux/amd64" })
    expect(classify("ErrImagePull", pull.isFound ? "" : pull.message), JSON.stringify(fault)).toBe(failure)
  }
})

test("no message makes it throw", () => {
  const anything = fc.string({ unit: fc.nat(0xffff).map(code => String.fromCharCode(code)) })
  fc.assert(fc.property(anything, text => void expect(classify("ErrImagePull", text)).toBeDefined()))
})

// What would take seconds if any step looked at every pair of characters of all of it.
for (const unit of [
  "a",
  " ",
  '"',
  "/",
  ": ",
  "x509: ",
  "tls:",
  "(mirrors also failed: [",
  "]): ",
  "manifest in ",
  ": 4",
])
  test(`a hundred thousand characters of ${JSON.stringify(unit)} take no time`, () => {
    const text = unit.repeat(100_000 / unit.length)
    const started = performance.now()
    for (let i = 0; i < 20; i++) classify("ErrImagePull", text)
    expect(performance.now() - started).toBeLessThan(30_000) // on a busy machine, too
  })

test("what stands behind four thousand characters is not read", () => {
  expect(classify("ErrImagePull", `${"a ".repeat(2048)}connection refused`)).toBe("UnknownFailure")
  expect(classify("ErrImagePull", `${"a ".repeat(2000)}connection refused`)).toBe("Unreachable")
})
