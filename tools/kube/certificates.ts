import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { run } from "./command.ts"
import { network } from "./orders.ts"

export type Certificates = {
  authority: string
  server: { certificate: string; key: string }
  /** What the API server shows to kubelet. */
  kubeletClient: { certificate: string; key: string }
  serviceAccount: { publicKey: string; key: string }
}

/** Makes the keys of one cluster in `folder`, good for ten days: no cluster of ours lives longer. */
export async function makeCertificates(folder: string): Promise<Certificates> {
  const file = (name: string) => join(folder, name)
  await Promise.all(
    ["authority", "server", "kubelet-client", "service-account"].map(name => makeKey(file(`${name}.key`))),
  )
  const self = ["-x509", "-new", "-key", file("authority.key"), "-subj", "/CN=aim-cluster", "-days", "10"]
  await run("openssl", ["req", ...self, "-out", file("authority.crt")])
  const names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"]
  const addresses = ["127.0.0.1", network.address, network.apiService]
  const alternatives = [...names.map(name => `DNS:${name}`), ...addresses.map(address => `IP:${address}`)].join(",")
  await Promise.all([
    sign(folder, "server", "/CN=kube-apiserver", `subjectAltName=${alternatives}\nextendedKeyUsage=serverAuth`),
    run("openssl", ["pkey", "-in", file("service-account.key"), "-pubout", "-out", file("service-account.pub")]),
    sign(folder, "kubelet-client", "/O=system:masters/CN=kube-apiserver", "extendedKeyUsage=clientAuth"),
  ])
  return {
    authority: file("authority.crt"),
    server: { certificate: file("server.crt"), key: file("server.key") },
    kubeletClient: { certificate: file("kubelet-client.crt"), key: file("kubelet-client.key") },
    serviceAccount: { publicKey: file("service-account.pub"), key: file("service-account.key") },
  }
}

const makeKey = (file: string) =>
  run("openssl", ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", file])

async function sign(folder: string, name: string, subject: string, extensions: string) {
  const file = (ending: string) => join(folder, `${name}.${ending}`)
  writeFileSync(file("ext"), `${extensions}\n`)
  await run("openssl", ["req", "-new", "-key", file("key"), "-subj", subject, "-out", file("csr")])
  const authority = ["-CA", join(folder, "authority.crt"), "-CAkey", join(folder, "authority.key")]
  const serial = ["-set_serial", `0x${Buffer.from(name).toString("hex")}`]
  await run("openssl", [
    "x509",
    "-req",
    "-in",
    file("csr"),
    ...authority,
    ...serial,
    "-days",
    "10",
    "-extfile",
    file("ext"),
    "-out",
    file("crt"),
  ])
}

/** A self-signed certificate, for a server on loopback. */
export async function makeLoopbackCertificate(folder: string): Promise<{ certificate: string; key: string }> {
  const files = { certificate: join(folder, "loopback.crt"), key: join(folder, "loopback.key") }
  await makeKey(files.key)
  const names = "subjectAltName=DNS:localhost,IP:127.0.0.1"
  const self = ["-x509", "-new", "-key", files.key, "-subj", "/CN=localhost", "-addext", names, "-days", "10"]
  await run("openssl", ["req", ...self, "-out", files.certificate])
  return files
}
