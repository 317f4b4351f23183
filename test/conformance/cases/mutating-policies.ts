import { topic } from "../harness/script.ts"
import { configMap, container, deployment, dicom, idlePod } from "./objects.ts"
import { applied, mutating, patched, rule, under, validating } from "./policies.ts"

const dry = { dryRun: "All" }
const images = { apiVersion: "services.example.com/v1alpha1", kind: "Dicom" }
const labelled = (label: string) => applied(`Object{metadata: Object.metadata{labels: {${label}}}}`)

export const mutatingPolicies = topic("mutating policies", "registry", {
  "a configuration that is applied": on =>
    under(on, [mutating([labelled("'added': object.metadata.name")])], async () => {
      await on.create("configmaps", configMap("a", { a: "1" }, { labels: { own: "yes" } }))
      await on.patch("configmaps", "a", "merge", { data: { a: "2" } })
    }),
  "a patch that is applied": on =>
    under(
      on,
      [
        mutating([
          patched(
            "[has(object.metadata.labels) ? JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('example.com/added'), value: 'yes'} : JSONPatch{op: 'add', path: '/metadata/labels', value: {'example.com/added': 'first'}}]",
          ),
        ]),
      ],
      async () => {
        await on.create("configmaps", configMap("a"))
        await on.create("configmaps", configMap("b", {}, { labels: { own: "yes" } }))
      },
    ),
  "every operation of a patch": on =>
    under(
      on,
      [
        mutating([
          patched(
            "[JSONPatch{op: 'test', path: '/data/a', value: '1'}, JSONPatch{op: 'copy', from: '/data/a', path: '/data/copied'}, JSONPatch{op: 'move', from: '/data/b', path: '/data/moved'}, JSONPatch{op: 'replace', path: '/data/a', value: 'replaced'}, JSONPatch{op: 'remove', path: '/data/c'}]",
          ),
        ]),
      ],
      () => on.create("configmaps", configMap("a", { a: "1", b: "2", c: "3" }), dry),
    ),
  "a patch whose test fails": on =>
    under(
      on,
      [
        mutating([
          patched("[JSONPatch{op: 'test', path: '/data/a', value: '2'}, JSONPatch{op: 'remove', path: '/data/a'}]"),
        ]),
      ],
      () => on.create("configmaps", configMap("a", { a: "1" }), dry),
    ),
  "patches that do not apply": on => {
    const patches = [
      "JSONPatch{op: 'remove', path: '/data/missing'}",
      "JSONPatch{op: 'add', path: '/missing/deep', value: 'x'}",
      "JSONPatch{op: 'replace', path: '/missing/deep', value: 'x'}",
      "JSONPatch{op: 'remove', path: '/missing/deep'}",
      "JSONPatch{op: 'move', from: '/missing/deep', path: '/data/x'}",
      "JSONPatch{op: 'copy', from: '/data/a', path: '/missing/deep'}",
      "JSONPatch{op: 'twist', path: '/data/a'}",
      "JSONPatch{op: 'add', path: '/metadata/finalizers/9', value: 'a/b'}",
      "JSONPatch{op: 'remove', path: '/metadata/finalizers/x'}",
    ]
    const choice = patches.map((patch, index) => `object.data.n == '${index}' ? [${patch}]`).join(" : ")
    return under(on, [mutating([patched(`${choice} : []`)])], async () => {
      for (const index of patches.keys())
        await on.create("configmaps", configMap("a", { a: "1", n: String(index) }, { finalizers: ["a/b"] }), dry)
    })
  },
  "a patch that does not apply, ignored": on =>
    under(
      on,
      [
        mutating([patched("[JSONPatch{op: 'remove', path: '/data/missing'}]"), labelled("'next': 'yes'")], {
          failurePolicy: "Ignore",
        }),
      ],
      () => on.create("configmaps", configMap("a"), dry),
    ),
  "a patch that makes no such object": on =>
    under(on, [mutating([patched("[JSONPatch{op: 'add', path: '/unknown', value: 'x'}]")])], () =>
      on.create("configmaps", configMap("a"), dry),
    ),
  "an expression that cannot be evaluated": on =>
    under(on, [mutating([labelled("'added': object.data.missing")])], () =>
      on.create("configmaps", configMap("a", { a: "1" }), dry),
    ),
  "mutations see what those before them made": on =>
    under(
      on,
      [
        mutating([labelled("'first': 'yes'"), labelled("'second': object.metadata.labels.first + variables.all")], {
          variables: [{ name: "all", expression: "string(object.metadata.labels.size())" }],
        }),
      ],
      () => on.create("configmaps", configMap("a"), dry),
    ),
  "lists are merged by their keys, and defaults filled in": on =>
    under(
      on,
      [
        mutating(
          [
            applied(
              "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: [Object.spec.template.spec.containers{name: 'app', env: [Object.spec.template.spec.containers.env{name: 'ADDED', value: 'yes'}]}, Object.spec.template.spec.containers{name: 'sidecar', image: 'registry.test/sidecar'}]}}}}",
            ),
          ],
          { matchConstraints: { resourceRules: [rule("apps:deployments", ["CREATE"])] } },
        ),
      ],
      () =>
        on.create(
          "deployments",
          deployment("a", {
            "spec.template.spec.containers": [container("registry.test/app:1", { env: [{ name: "OWN", value: "1" }] })],
          }),
          dry,
        ),
    ),
  "what can only be replaced as a whole": on =>
    under(
      on,
      [
        mutating(
          [
            applied(
              "Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {'a': 'b'}}, template: Object.spec.template{spec: Object.spec.template.spec{containers: [Object.spec.template.spec.containers{name: 'app', args: ['x']}]}}}}",
            ),
          ],
          {
            matchConstraints: { resourceRules: [rule("apps:deployments", ["CREATE"])] },
          },
        ),
      ],
      () => on.create("deployments", deployment("a"), dry),
    ),
  "a field that the kind does not have": on =>
    under(on, [mutating([applied("Object{unknown: 'x'}")])], () => on.create("configmaps", configMap("a"), dry)),
  "a literal that is named after another field": on =>
    under(on, [mutating([applied("Object{metadata: Object.spec{labels: {'a': 'b'}}}")])], () =>
      on.create("configmaps", configMap("a"), dry),
    ),
  "a policy that wants to see what came after it": on =>
    under(
      on,
      ["IfNeeded", "Never"].map(reinvocationPolicy =>
        mutating(
          [
            patched(
              `[JSONPatch{op: 'add', path: '/data/${reinvocationPolicy}', value: string(int(object.data[?'${reinvocationPolicy}'].orValue('0')) + 1)}]`,
            ),
          ],
          { reinvocationPolicy },
        ),
      ),
      () => on.create("configmaps", configMap("a", { a: "1" }), dry),
    ),
  "one that waits for another": on =>
    under(
      on,
      [
        mutating([labelled("'follows': 'yes'")], {
          reinvocationPolicy: "IfNeeded",
          matchConditions: [
            { name: "after", expression: "has(object.metadata.labels) && 'leads' in object.metadata.labels" },
          ],
        }),
        mutating([labelled("'leads': 'yes'")], { reinvocationPolicy: "IfNeeded" }),
      ],
      async () => {
        const made = await on.quietly.create("configmaps", configMap("a"), dry)
        on.note("leads", made.metadata.labels.leads)
      },
    ),
  "validating policies see what mutating ones made": on =>
    under(
      on,
      [
        mutating([labelled("'added': 'yes'")]),
        validating([{ expression: "!has(object.metadata.labels.added)", message: "it was added" }]),
      ],
      () => on.create("configmaps", configMap("a"), dry),
    ),
  "an object that became wrong": on =>
    under(on, [mutating([labelled("'added': 'not a label!'")])], () => on.create("configmaps", configMap("a"), dry)),
  parameters: async on => {
    await on.quietly.create("dicoms", dicom("labels", { "spec.image": "blue" }))
    await under(
      on,
      [
        mutating([labelled("'team': params.spec.image")], { paramKind: images }, [
          { paramRef: { name: "labels", parameterNotFoundAction: "Deny" } },
        ]),
      ],
      () => on.create("configmaps", configMap("a"), dry),
    )
  },
  "parameters that are not there": on =>
    under(
      on,
      [
        mutating([labelled("'team': params.spec.image")], { paramKind: images }, [
          { paramRef: { name: "labels", parameterNotFoundAction: "Deny" } },
        ]),
      ],
      () => on.create("configmaps", configMap("a"), dry),
    ),
  "conditions that cannot be evaluated": on =>
    under(
      on,
      [
        mutating([labelled("'a': 'b'")], {
          matchConditions: [{ name: "fails", expression: "object.data.missing == 'x'" }],
        }),
      ],
      () => on.create("configmaps", configMap("a", { a: "1" }), dry),
    ),
  "a patch of the scale of an object": on =>
    under(
      on,
      [
        mutating([patched("[JSONPatch{op: 'replace', path: '/spec/replicas', value: 5}]")], {
          matchConstraints: { resourceRules: [rule("apps:deployments/scale", ["UPDATE"])] },
        }),
      ],
      async () => {
        await on.quietly.create("deployments", deployment("a"))
        const { spec } = await on.quietly.patch("deployments/scale", "a", "merge", { spec: { replicas: 9 } }, dry)
        on.note("replicas", spec)
      },
    ),
  "the scale of an object": on =>
    under(
      on,
      [
        mutating(
          [applied("Object{spec: Object.spec{replicas: object.spec.replicas > 5 ? 5 : object.spec.replicas}}")],
          {
            matchConstraints: { resourceRules: [rule("apps:deployments/scale", ["UPDATE"])] },
          },
        ),
      ],
      async () => {
        await on.quietly.create("deployments", deployment("a"))
        await on.patch("deployments/scale", "a", "merge", { spec: { replicas: 9 } }, dry)
      },
    ),
  "a new pod": on =>
    under(
      on,
      [
        mutating(
          [
            patched(
              "object.spec.containers.transformList(i, container, JSONPatch{op: 'replace', path: '/spec/containers/' + string(i) + '/image', value: 'mirror.test/' + container.image})",
            ),
          ],
          { matchConstraints: { resourceRules: [rule("pods", ["CREATE"])] } },
        ),
      ],
      async () => {
        const { spec } = await on.quietly.create("pods", idlePod("a"), dry)
        on.note(
          "image",
          spec.containers.map(({ image, imagePullPolicy }: { image: string; imagePullPolicy: string }) => [
            image,
            imagePullPolicy,
          ]),
        )
      },
    ),
  "names, uids and times come after": on =>
    under(
      on,
      [
        mutating([
          labelled(
            "'name': string(has(object.metadata.name)), 'uid': string(has(object.metadata.uid)), 'request': request.?name.orValue('none')",
          ),
        ]),
      ],
      () => on.create("configmaps", { metadata: { generateName: "some-" } }, dry),
    ),
  "kubectl and a refusal": on =>
    under(on, [mutating([patched("[JSONPatch{op: 'remove', path: '/data/missing'}]")])], async () => {
      on.file("a.yaml", configMap("a", { a: "1" }))
      await on.kubectl(["apply", "-f", "a.yaml"])
    }),
})
