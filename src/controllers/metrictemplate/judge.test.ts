import { expect, test } from "vitest"
import type { MetricTemplate } from "#api/v1alpha1/metrictemplate/index.ts"
import { seenWith } from "../test-usable.ts"
import { judge } from "./judge.ts"

type Provider = MetricTemplate["spec"]["provider"]
type Given = { provider?: Partial<Provider>; query?: string; keys?: Record<string, string>; allow?: readonly string[] }

const judged = ({ provider, query = "up", keys, allow }: Given) =>
  judge(
    seenWith(
      {
        metadata: { name: "errors", namespace: "shop" },
        spec: {
          provider: { type: "prometheus", address: "http://prometheus:9090", insecureSkipVerify: false, ...provider },
          query,
        },
      } as MetricTemplate,
      { keys, allow },
    ),
  )
const monitoring = { address: "http://prometheus.monitoring.svc:9090" }

const externals: Partial<Provider> = {
  ...{ type: "externalmetrics", address: "https://kubernetes.default.svc", secretRef: { name: "reader" } },
}

const cases: Record<string, [Given, string, string]> = {
  "a Service of its namespace": [{}, "Usable", "Canaries can ask prometheus"],
  "a public host": [{ provider: { address: "https://mimir.example.com/prometheus" } }, "Usable", ""],
  "a service without an implementation": [{ provider: { type: "cloudwatch" } }, "NotSupported", "spec.provider.type cloudwatch"],
  "Graphite": [{ provider: { type: "graphite" }, query: "target=shop.{{ target }}.{{ variables.a }}" }, "Usable", "Canaries can ask graphite"],
  "Graphite, without a target": [{ provider: { type: "graphite" }, query: "shop.errors" }, "InvalidQuery", "it must be target="],
  "Datadog at its own address": [{ provider: { type: "datadog", address: "", secretRef: { name: "keys" } }, keys: { datadog_api_key: "hunter2", datadog_application_key: "hunter2" } }, "Usable", "Canaries can ask datadog"],
  "Datadog without a Secret": [{ provider: { type: "datadog", address: "" } }, "SecretMissing", "spec.provider.secretRef is missing"],
  "Datadog without a key": [{ provider: { type: "datadog", address: "", secretRef: { name: "keys" } }, keys: { datadog_api_key: "hunter2" } }, "SecretMissing", "lacks the key datadog_application_key"],
  "Dynatrace without the address of an account": [{ provider: { type: "dynatrace", address: "", secretRef: { name: "keys" } } }, "AddressMissing", "such as https://ENVIRONMENT"],
  "Splunk, where it is asked": [{ provider: { type: "splunk", address: "http://api.monitoring.svc", secretRef: { name: "keys" } } }, "AddressForbidden", "--allow-egress shop=stream.monitoring.svc:80"],
  "no address": [{ provider: { address: "" } }, "AddressMissing", "spec.provider.address is missing: write"],
  "a query that does not parse": [{ query: "sum(up" }, "InvalidQuery", "spec.query: the query does not parse at line 1, column 7"],
  "a function that there is not": [{ query: "{{ nonsense }}" }, "InvalidQuery", "a query can name"],
  "a variable that a Canary gives": [{ query: 'x{a="{{ variables.a }}"}' }, "Usable", ""],
  "JSON of the web": [{ provider: { type: "web", value: "response.value" }, query: "service={{ service }}" }, "Usable", "Canaries can ask web"],
  "JSON of the web, without the place of the number": [{ provider: { type: "web" } }, "InvalidQuery", "spec.provider.value is missing"],
  "JSON of the web, without an address": [{ provider: { type: "web", address: "", value: "response" } }, "AddressMissing", "write https://HOST/PATH"],
  "external metrics": [{ provider: externals, query: "{{ namespace }}/queue", keys: { token: "hunter2" }, allow: ["shop=kubernetes.default.svc:443"] }, "Usable", "Canaries can ask externalmetrics"],
  "external metrics without an account": [{ provider: { ...externals, secretRef: undefined } }, "AddressMissing", "spec.provider.secretRef is missing"],
  "external metrics of no namespace": [{ provider: externals, query: "queue" }, "InvalidQuery", "NAMESPACE/METRIC"],
  "a Service of another namespace": [{ provider: monitoring }, "AddressForbidden", "--allow-egress shop=prometheus.monitoring.svc:9090"],
  "the same, allowed": [{ provider: monitoring, allow: ["shop=prometheus.monitoring.svc:9090"] }, "Usable", ""],
  "the same, allowed to another namespace": [{ provider: monitoring, allow: ["other=prometheus.monitoring.svc:9090"] }, "AddressForbidden", ""],
  "an address of the machine": [{ provider: { address: "http://127.0.0.1:9090" } }, "AddressForbidden", "--allow-egress"],
  "a password in the address": [{ provider: { address: "http://a:hunter2@prometheus:9090" } }, "InvalidAddress", "write them to a Secret"],
  "a header that is ours": [{ provider: { headers: { Host: ["x"] } } }, "InvalidAddress", "header Host cannot be set"],
  "a certificate that is not checked": [{ provider: { address: "https://mimir.example.com", insecureSkipVerify: true } }, "AddressForbidden", "certificates"],
  "a token": [{ keys: { token: "hunter2" } }, "Usable", ""],
  "a user without a password": [{ keys: { username: "hunter2" } }, "SecretMissing", "neither the key token nor both"],
} // biome-ignore format: a table
for (const [name, [given, reason, message]] of Object.entries(cases))
  test(name, () => {
    const found = judged(given)
    expect(found).toMatchObject({ reason, message: expect.stringContaining(message) })
    expect(JSON.stringify(found)).not.toContain("hunter2")
  })
