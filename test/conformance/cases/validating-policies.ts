import { type Json, topic } from "../harness/script.ts"
import { configMap, deployment, dicom, idlePod } from "./objects.ts"
import { here, rule, under, validating } from "./policies.ts"

const short = "!has(object.data.long)"
const dry = { dryRun: "All" }

/**
 * Parameters of a kind of our own: the server stops to watch a built-in kind when the first policy that has such
 * parameters is gone, and never begins again.
 */
const images = { apiVersion: "services.example.com/v1alpha1", kind: "Dicom" }
const fleets = { apiVersion: "autoimagemanager.io/v1alpha1", kind: "ServiceImage" }

/** Says what an expression gives, by refusing with it. */
const says = (messageExpression: string): Json => ({ expression: "false", messageExpression })

export const validatingPolicies = topic("validating policies", "registry", {
  "a validation that holds and one that does not": on =>
    under(on, [validating([short])], async () => {
      await on.create("configmaps", configMap("good", { a: "1" }))
      await on.create("configmaps", configMap("bad", { long: "1" }))
      await on.get("configmaps", "bad")
    }),
  "what a refusal says": on =>
    under(
      on,
      [
        validating([
          { expression: "object.metadata.name != 'a'", message: " with a message " },
          {
            expression: "object.metadata.name != 'b'",
            message: "not this",
            messageExpression: "'made for ' + object.metadata.name",
          },
          {
            expression: "object.metadata.name != 'c'",
            message: "instead",
            messageExpression: "string(object.data.missing)",
          },
          { expression: "object.metadata.name != 'd'", message: "instead", messageExpression: "'two\\nlines'" },
          { expression: " object.metadata.name   != 'e' ", messageExpression: "'  '" },
        ]),
      ],
      async () => {
        for (const name of ["a", "b", "c", "d", "e"]) await on.create("configmaps", configMap(name), dry)
      },
    ),
  "the reason decides the code": on =>
    under(
      on,
      [
        validating(
          ["Forbidden", "Invalid", "RequestEntityTooLarge"].map(reason => ({
            expression: `object.metadata.name != '${reason.toLowerCase()}'`,
            message: "because",
            reason,
          })),
        ),
      ],
      async () => {
        for (const name of ["forbidden", "invalid", "requestentitytoolarge"])
          await on.create("configmaps", configMap(name), dry)
      },
    ),
  "several validations fail": on =>
    under(
      on,
      [
        validating([
          { expression: "false", message: "first" },
          { expression: "false", message: "second" },
        ]),
      ],
      () => on.create("configmaps", configMap("a"), dry),
    ),
  "an expression that cannot be evaluated refuses": on =>
    under(
      on,
      [
        validating([
          "object.metadata.name != 'a' || object.data.missing == 'x'",
          "object.metadata.name != 'b' || object.data.list.split(',')[5] == 'x'",
          "object.metadata.name != 'c' || object.data.list + 1 == 2",
          "object.metadata.name != 'e' || 1 / (object.data.size() - 1) == 1",
        ]),
      ],
      async () => {
        for (const name of ["a", "b", "c", "e"]) await on.create("configmaps", configMap(name, { list: "x,y" }), dry)
      },
    ),
  "an expression that cannot be evaluated lets pass where failures are ignored": on =>
    under(on, [validating(["object.data.missing == 'x'"], { failurePolicy: "Ignore" })], () =>
      on.create("configmaps", configMap("a"), dry),
    ),
  "a failure that is ignored hides no denial": on =>
    under(
      on,
      [validating(["object.data.missing == 'x'", { expression: "false", message: "no" }], { failurePolicy: "Ignore" })],
      () => on.create("configmaps", configMap("a"), dry),
    ),
  "errors beside answers": on =>
    under(
      on,
      [
        validating([
          "object.data.missing == 'x' || object.metadata.name == 'a'",
          "!(object.data.missing == 'x' && object.metadata.name == 'b')",
        ]),
      ],
      async () => {
        for (const name of ["a", "b"]) await on.create("configmaps", configMap(name), dry)
      },
    ),
  "a warning": on =>
    under(
      on,
      [validating([{ expression: "false", message: 'mind "this"' }], {}, [{ validationActions: ["Warn"] }])],
      async () => {
        await on.create("configmaps", configMap("a"))
        await on.patch("configmaps", "a", "merge", { data: { a: "1" } })
      },
    ),
  "warnings of several validations": on =>
    under(
      on,
      [
        validating(
          [
            { expression: "false", message: "one" },
            { expression: "false", message: "two" },
            { expression: "false", message: "one" },
          ],
          {},
          [{ validationActions: ["Warn", "Audit"] }],
        ),
      ],
      () => on.create("configmaps", configMap("a"), dry),
    ),
  "a warning about what cannot be evaluated": on =>
    under(on, [validating(["object.data.missing == 'x'"], {}, [{ validationActions: ["Warn"] }])], () =>
      on.create("configmaps", configMap("a"), dry),
    ),
  "an audit alone": on =>
    under(on, [validating(["false"], {}, [{ validationActions: ["Audit"] }])], () =>
      on.create("configmaps", configMap("a"), dry),
    ),
  "a denial with an audit": on =>
    under(on, [validating(["false"], {}, [{ validationActions: ["Deny", "Audit"] }])], () =>
      on.create("configmaps", configMap("a"), dry),
    ),
  "two bindings of one policy": on =>
    under(
      on,
      [
        validating([{ expression: "false", message: "no" }], {}, [
          { validationActions: ["Warn"] },
          { validationActions: ["Deny"] },
        ]),
      ],
      () => on.create("configmaps", configMap("a"), dry),
    ),
  "a policy that nothing binds": on =>
    under(on, [validating(["false"], {}, [])], () => on.create("configmaps", configMap("a"), dry)),
  "creations, updates and deletions are told apart": on =>
    under(
      on,
      [
        validating(
          [
            says(
              "request.operation + (object == null ? ' without object' : '') + (oldObject == null ? ' without old' : '')",
            ),
          ],
          {
            matchConstraints: {
              resourceRules: [rule("configmaps", ["CREATE", "UPDATE", "DELETE"])],
              objectSelector: { matchLabels: { held: "yes" } },
            },
          },
        ),
      ],
      async () => {
        await on.quietly.create("configmaps", configMap("a"))
        await on.create("configmaps", configMap("b", {}, { labels: { held: "yes" } }))
        await on.patch("configmaps", "a", "merge", { metadata: { labels: { held: "yes" } } })
        await on.patch("configmaps", "a", "json", [{ op: "add", path: "/metadata/labels", value: { held: "yes" } }])
        await on.apply("configmaps", configMap("a", {}, { labels: { held: "yes" } }))
        await on.apply("configmaps", configMap("new", {}, { labels: { held: "yes" } }))
      },
    ),
  "a deletion": on =>
    under(
      on,
      [
        validating(
          [{ expression: "oldObject.metadata.name != 'kept'", messageExpression: "'keeps ' + oldObject.data.what" }],
          {
            matchConstraints: { resourceRules: [rule("configmaps", ["DELETE"])] },
          },
        ),
      ],
      async () => {
        for (const name of ["kept", "gone"]) await on.quietly.create("configmaps", configMap(name, { what: "x" }))
        await on.remove("configmaps", "kept")
        await on.remove("configmaps", "kept", { dryRun: ["All"] })
        await on.remove("configmaps", "gone")
        await on.list("configmaps", { fieldSelector: "metadata.name!=kube-root-ca.crt" })
      },
    ),
  "a deletion of many": on =>
    under(
      on,
      [
        validating([{ expression: "false", message: "kept" }], {
          matchConstraints: { resourceRules: [rule("configmaps", ["DELETE"])] },
        }),
      ],
      async () => {
        await on.quietly.create("configmaps", configMap("a", {}, { labels: { many: "yes" } }))
        await on.send("DELETE", on.path("configmaps"), { query: { labelSelector: "many=yes" } })
      },
    ),
  "a deletion with a warning": on =>
    under(
      on,
      [
        validating(
          [{ expression: "false", message: "a pity" }],
          { matchConstraints: { resourceRules: [rule("configmaps", ["DELETE"])] } },
          [{ validationActions: ["Warn"] }],
        ),
      ],
      async () => {
        await on.quietly.create("configmaps", configMap("a"))
        await on.remove("configmaps", "a")
      },
    ),
  "a field that may not change": on =>
    under(
      on,
      [
        validating(
          [{ expression: "object.data.fixed == oldObject.data.fixed", message: "fixed is fixed", reason: "Forbidden" }],
          {
            matchConstraints: { resourceRules: [rule("configmaps", ["UPDATE"])] },
          },
        ),
      ],
      async () => {
        const made = await on.quietly.create("configmaps", configMap("a", { fixed: "1", free: "1" }))
        await on.patch("configmaps", "a", "merge", { data: { free: "2" } })
        await on.patch("configmaps", "a", "merge", { data: { fixed: "2" } })
        await on.replace("configmaps", { ...made, metadata: { name: "a" }, data: { fixed: "3" } })
      },
    ),
  "names that the server invents": on =>
    under(
      on,
      [
        validating([
          says("'name: ' + request.?name.orValue('none') + ', object has one: ' + string(has(object.metadata.name))"),
        ]),
      ],
      () => on.create("configmaps", { metadata: { generateName: "some-" } }, dry),
    ),
  "rules for names": on =>
    under(
      on,
      [
        validating(["false"], {
          matchConstraints: { resourceRules: [rule("configmaps", ["CREATE"], { resourceNames: ["a", "b"] })] },
        }),
      ],
      async () => {
        await on.create("configmaps", configMap("b"), dry)
        await on.create("configmaps", configMap("c"), dry)
      },
    ),
  "rules that exclude": on =>
    under(
      on,
      [
        validating(["false"], {
          matchConstraints: {
            resourceRules: [rule("*", ["*"])],
            excludeResourceRules: [
              rule("configmaps", ["*"], { resourceNames: ["free"] }),
              rule("serviceaccounts", ["*"]),
            ],
          },
        }),
      ],
      async () => {
        await on.create("configmaps", configMap("free"), dry)
        await on.create("configmaps", configMap("held"), dry)
        await on.create("serviceaccounts", { metadata: { name: "free" } }, dry)
      },
    ),
  "groups and versions": on =>
    under(
      on,
      [
        validating(["false"], {
          matchConstraints: {
            matchPolicy: "Exact",
            resourceRules: [
              { apiGroups: ["apps"], apiVersions: ["v1beta1"], resources: ["deployments"], operations: ["*"] },
            ],
          },
        }),
        validating([{ expression: "false", message: "of apps" }], {
          matchConstraints: { resourceRules: [rule("apps:*")] },
        }),
      ],
      async () => {
        await on.create("deployments", deployment("a"), dry)
        await on.create("configmaps", configMap("a"), dry)
      },
    ),
  "objects that are selected, as they are or were": on =>
    under(
      on,
      [
        validating([{ expression: "false", message: "selected" }], {
          matchConstraints: {
            objectSelector: { matchExpressions: [{ key: "held", operator: "In", values: ["yes"] }] },
          },
        }),
      ],
      async () => {
        await on.create("configmaps", configMap("a", {}, { labels: { held: "no" } }))
        await on.create("configmaps", configMap("b", {}, { labels: { held: "yes" } }))
        await on.patch("configmaps", "a", "merge", { metadata: { labels: { held: "yes" } } })
        await on.patch("configmaps", "a", "merge", { metadata: { labels: { held: "still no" } } })
      },
    ),
  "namespaces that are selected": on =>
    under(
      on,
      [
        validating([{ expression: "false", message: "a secret namespace" }], {
          matchConstraints: { namespaceSelector: { matchLabels: { ...here(on).matchLabels, secret: "yes" } } },
        }),
      ],
      async () => {
        await on.create("configmaps", configMap("a"), dry)
        await on.quietly.patch("namespaces", on.namespace, "merge", { metadata: { labels: { secret: "yes" } } })
        await on.until("the label is seen", async () => {
          const { status } = await on.unrecorded("POST", on.path("configmaps"), { query: dry, body: configMap("a") })
          return status >= 400
        })
        await on.create("configmaps", configMap("a"), dry)
      },
    ),
  "a namespace itself": on =>
    under(
      on,
      [
        validating([says("'in ' + request.namespace + ', known: ' + string(namespaceObject != null)")], {
          matchConstraints: {
            namespaceSelector: {},
            objectSelector: { matchLabels: { case: on.id } },
            resourceRules: [rule("namespaces", ["CREATE"], { scope: "Cluster" })],
          },
        }),
      ],
      () => on.create("namespaces", { metadata: { name: `${on.id}-other`, labels: { case: on.id } } }, dry),
    ),
  scopes: on => {
    const labels = { case: on.id }
    const scoped = (scope: string) =>
      validating([{ expression: "false", message: scope }], {
        matchConstraints: {
          namespaceSelector: {},
          objectSelector: { matchLabels: labels },
          resourceRules: [rule("*", ["CREATE"], { scope })],
        },
      })
    return under(on, [scoped("Namespaced"), scoped("Cluster")], async () => {
      await on.create("configmaps", configMap("a", {}, { labels }), dry)
      await on.create("namespaces", { metadata: { name: `${on.id}-other`, labels } }, dry)
    })
  },
  conditions: on =>
    under(
      on,
      [
        validating(["false"], {
          matchConditions: [
            { name: "first", expression: "object.metadata.name.startsWith('held')" },
            { name: "second", expression: "request.operation == 'CREATE'" },
          ],
        }),
      ],
      async () => {
        await on.create("configmaps", configMap("free"), dry)
        await on.create("configmaps", configMap("held"), dry)
      },
    ),
  "conditions that cannot be evaluated": on =>
    under(
      on,
      [
        validating(["true"], {
          matchConditions: [
            { name: "fails", expression: "object.data.missing == 'x'" },
            { name: "also", expression: "object.data.also == 'x'" },
            { name: "decides", expression: "object.metadata.name != 'free'" },
          ],
        }),
      ],
      async () => {
        await on.create("configmaps", configMap("free"), dry)
        await on.create("configmaps", configMap("held"), dry)
        await on.create("configmaps", configMap("one", { missing: "x" }), dry)
      },
    ),
  "conditions that cannot be evaluated, ignored": on =>
    under(
      on,
      [
        validating(["false"], {
          failurePolicy: "Ignore",
          matchConditions: [{ name: "fails", expression: "object.data.missing == 'x'" }],
        }),
      ],
      () => on.create("configmaps", configMap("a"), dry),
    ),
  variables: on =>
    under(
      on,
      [
        validating(
          [
            {
              expression: "variables.count < 3",
              messageExpression: "string(variables.count) + ' keys of ' + string(variables.names.size())",
            },
            { expression: "object.metadata.name != 'broken' || variables.broken == 'x'" },
            { expression: "object.metadata.name != 'nested' || variables.nested" },
          ],
          {
            variables: [
              { name: "names", expression: "object.?data.orValue({}).map(key, key)" },
              { name: "count", expression: "variables.names.size()" },
              { name: "broken", expression: "object.data.missing" },
              { name: "nested", expression: "variables.broken == 'x'" },
            ],
          },
        ),
      ],
      async () => {
        await on.create("configmaps", configMap("few", { a: "1" }), dry)
        await on.create("configmaps", configMap("many", { a: "1", b: "2", c: "3" }), dry)
        await on.create("configmaps", configMap("broken"), dry)
        await on.create("configmaps", configMap("nested"), dry)
      },
    ),
  "parameters that must be there and are not": on =>
    under(
      on,
      [
        validating(
          [
            {
              expression: "object.data.size() <= int(params.spec.image)",
              messageExpression: "'at most ' + params.spec.image + ', says ' + params.metadata.name",
            },
          ],
          {
            paramKind: images,
            matchConditions: [{ name: "own", expression: "object.metadata.name != params.metadata.name" }],
          },
          [{ paramRef: { name: "limits", parameterNotFoundAction: "Deny" } }],
        ),
      ],
      () => on.create("configmaps", configMap("a", { a: "1" }), dry),
    ),
  "parameters that are there": async on => {
    await on.quietly.create("dicoms", dicom("limits", { "spec.image": "1" }))
    await under(
      on,
      [
        validating(
          [
            {
              expression: "object.data.size() <= int(params.spec.image)",
              messageExpression:
                "'at most ' + params.spec.image + ', says ' + params.metadata.name + ', a ' + params.kind",
            },
          ],
          { paramKind: images },
          [{ paramRef: { name: "limits", namespace: on.namespace, parameterNotFoundAction: "Deny" } }],
        ),
      ],
      async () => {
        await on.create("configmaps", configMap("a", { a: "1" }), dry)
        await on.create("configmaps", configMap("b", { a: "1", b: "2" }), dry)
      },
    )
  },
  "parameters by selector": async on => {
    for (const [name, most] of Object.entries({ one: "1", three: "3" }))
      await on.quietly.create("dicoms", dicom(name, { "spec.image": most, "metadata.labels": { limits: "yes" } }))
    await under(
      on,
      [
        validating(
          [
            {
              expression: "object.data.size() <= int(params.spec.image)",
              messageExpression: "'at most ' + params.spec.image",
            },
          ],
          { paramKind: images },
          [{ paramRef: { selector: { matchLabels: { limits: "yes" } }, parameterNotFoundAction: "Deny" } }],
        ),
      ],
      async () => {
        await on.create("configmaps", configMap("a", { a: "1" }), dry)
        await on.create("configmaps", configMap("b", { a: "1", b: "2" }), dry)
      },
    )
  },
  "parameters that are not there": on =>
    under(
      on,
      [
        validating([{ expression: "false", message: "never evaluated" }], { paramKind: images }, [
          { paramRef: { name: "nothing", parameterNotFoundAction: "Allow" } },
        ]),
      ],
      () => on.create("configmaps", configMap("a"), dry),
    ),
  "a binding that names no parameters": on =>
    under(on, [validating([says("'without: ' + string(params == null)")], { paramKind: images }, [{}])], () =>
      on.create("configmaps", configMap("a"), dry),
    ),
  "parameters of the whole cluster": async on => {
    const name = `${on.id}-fleet`
    const target = { apiVersion: images.apiVersion, kind: images.kind }
    await on.quietly.create("serviceimages", {
      ...fleets,
      metadata: { name },
      spec: { target, defaultImage: "registry.test/dicom:2" },
    })
    try {
      await under(
        on,
        [
          validating([says("'image ' + params.spec.defaultImage")], { paramKind: fleets }, [
            { paramRef: { name, parameterNotFoundAction: "Deny" } },
          ]),
        ],
        () => on.create("configmaps", configMap("a"), dry),
      )
    } finally {
      await on.quietly.remove("serviceimages", name)
    }
  },
  "a namespace for parameters of the whole cluster": on =>
    under(
      on,
      [
        validating(["true"], { paramKind: fleets }, [
          { paramRef: { name: "system-node-critical", namespace: on.namespace, parameterNotFoundAction: "Deny" } },
        ]),
      ],
      () => on.create("configmaps", configMap("a"), dry),
    ),
  "parameters of a namespace for what has none": on =>
    under(
      on,
      [
        validating(
          ["true"],
          {
            paramKind: images,
            matchConstraints: {
              namespaceSelector: {},
              objectSelector: { matchLabels: { case: on.id } },
              resourceRules: [rule("scheduling.k8s.io:priorityclasses", ["CREATE"])],
            },
          },
          [{ paramRef: { name: "limits", parameterNotFoundAction: "Deny" } }],
        ),
      ],
      () => on.create("priorityclasses", { metadata: { name: on.id, labels: { case: on.id } }, value: 1 }, dry),
    ),
  "parameters of a kind that does not exist": on =>
    under(
      on,
      [
        validating(["true"], { paramKind: { apiVersion: "example.com/v1", kind: "Limit" } }, [
          { paramRef: { name: "limits", parameterNotFoundAction: "Deny" } },
        ]),
      ],
      () => on.create("configmaps", configMap("a"), dry),
    ),
  "a binding for fewer resources": on =>
    under(
      on,
      [
        validating(["false"], { matchConstraints: { resourceRules: [rule("configmaps"), rule("serviceaccounts")] } }, [
          {
            matchResources: {
              resourceRules: [rule("serviceaccounts")],
              objectSelector: { matchLabels: { held: "yes" } },
            },
          },
        ]),
      ],
      async () => {
        await on.create("configmaps", configMap("a", {}, { labels: { held: "yes" } }), dry)
        await on.create("serviceaccounts", { metadata: { name: "a" } }, dry)
        await on.create("serviceaccounts", { metadata: { name: "a", labels: { held: "yes" } } }, dry)
      },
    ),
  "what a request says of itself": on =>
    under(
      on,
      [
        validating(
          [
            says(
              [
                "request.operation",
                "request.kind.group + '/' + request.kind.version + ' ' + request.kind.kind",
                "request.resource.group + '/' + request.resource.version + ' ' + request.resource.resource",
                "request.requestKind.kind",
                "request.requestResource.resource",
                "request.name",
                "request.namespace",
                "request.?subResource.orValue('none')",
                "string(request.dryRun)",
                "request.options.kind + ' ' + request.options.?fieldManager.orValue('none')",
                "string('system:masters' in request.userInfo.groups)",
              ].join(" + ' | ' + "),
            ),
          ],
          { matchConstraints: { resourceRules: [rule("apps:deployments", ["CREATE", "UPDATE", "DELETE"])] } },
        ),
      ],
      async () => {
        await on.create("deployments", deployment("a"), dry)
        await on.create("deployments", deployment("a"), { fieldManager: "me" })
      },
    ),
  "the namespace of a request": async on => {
    await on.quietly.patch("namespaces", on.namespace, "merge", { metadata: { labels: { team: "blue" } } })
    await under(
      on,
      [
        validating([
          {
            expression: "namespaceObject.metadata.labels.team == 'red'",
            messageExpression: "'team ' + namespaceObject.metadata.labels.team + ', ' + namespaceObject.status.phase",
          },
        ]),
      ],
      () => on.create("configmaps", configMap("a"), dry),
    )
  },
  "an authorizer": on =>
    under(
      on,
      [
        validating([
          {
            expression: "!authorizer.group('').resource('pods').namespace(request.namespace).check('create').allowed()",
            message: "may create pods",
          },
          { expression: "!authorizer.requestResource.check('update').allowed()", message: "may update it" },
          { expression: "!authorizer.path('/healthz').check('get').allowed()", message: "may see the health" },
        ]),
      ],
      () => on.create("configmaps", configMap("a"), dry),
    ),
  "the status of an object": on =>
    under(
      on,
      [
        validating([{ expression: "!has(object.status.nominatedNodeName)", message: "not nominated" }], {
          matchConstraints: { resourceRules: [rule("pods/status", ["UPDATE"])] },
        }),
      ],
      async () => {
        await on.quietly.create("pods", idlePod("a"))
        await on.patch("pods", "a", "merge", { metadata: { labels: { a: "b" } } }, dry)
        await on.patch("pods/status", "a", "merge", { status: { nominatedNodeName: "somewhere" } }, dry)
      },
    ),
  "the scale of an object": on =>
    under(
      on,
      [
        validating(
          [
            {
              expression: "object.spec.replicas < 5",
              messageExpression:
                "request.kind.kind + ' of ' + request.resource.resource + '/' + request.subResource + ': ' + string(oldObject.spec.?replicas.orValue(0)) + ' to ' + string(object.spec.replicas)",
            },
          ],
          { matchConstraints: { resourceRules: [rule("apps:deployments/scale", ["UPDATE"])] } },
        ),
      ],
      async () => {
        await on.quietly.create("deployments", deployment("a"))
        await on.patch("deployments/scale", "a", "merge", { spec: { replicas: 3 } }, dry)
        await on.patch("deployments/scale", "a", "merge", { spec: { replicas: 7 } }, dry)
        const { spec } = await on.quietly.patch("deployments", "a", "merge", { spec: { replicas: 7 } }, dry)
        on.note("replicas of the object", spec.replicas)
      },
    ),
  "a kind of one's own": on =>
    under(
      on,
      [
        validating([{ expression: "!object.spec.image.endsWith(':latest')", message: "no latest" }], {
          matchConstraints: { resourceRules: [rule("services.example.com:dicoms")] },
        }),
      ],
      async () => {
        await on.create("dicoms", dicom("a"), dry)
        await on.create("dicoms", dicom("a", { "spec.image": "registry.test/dicom:latest" }), dry)
      },
    ),
  "another version of the same objects": on => {
    const event = {
      metadata: { name: "e" },
      involvedObject: { kind: "ConfigMap", namespace: on.namespace, name: "a" },
      reason: "Because",
      message: "so",
      type: "Normal",
      reportingComponent: "conformance.example.com/test",
    }
    const constraints = (matchPolicy: string) => ({
      matchConstraints: {
        matchPolicy,
        objectSelector: { matchLabels: { policy: matchPolicy.toLowerCase() } },
        resourceRules: [
          { apiGroups: ["events.k8s.io"], apiVersions: ["v1"], resources: ["events"], operations: ["CREATE"] },
        ],
      },
    })
    const message = says(
      "request.kind.group + ' for ' + request.requestKind.group + ': ' + object.note + ' about ' + object.regarding.name",
    )
    return under(
      on,
      [validating([message], constraints("Equivalent")), validating(["false"], constraints("Exact"))],
      async () => {
        for (const policy of ["equivalent", "exact"])
          await on.create("events", { ...event, metadata: { name: `e-${policy}`, labels: { policy } } }, dry)
      },
    )
  },
  "what is wrong in itself is refused before, what is there already after": on =>
    under(on, [validating([{ expression: "!object.metadata.name.startsWith('held')", message: "held" }])], async () => {
      await on.create("configmaps", { metadata: { name: "held!" } })
      await on.quietly.create("configmaps", configMap("there"))
      await on.create("configmaps", configMap("there"))
      await on.create("configmaps", configMap("held"))
    }),
  "policies are asked about everything but policies": on =>
    under(
      on,
      [
        validating(["false"], {
          matchConstraints: {
            namespaceSelector: {},
            objectSelector: { matchLabels: { case: on.id } },
            resourceRules: [rule("*:*", ["*"], { apiGroups: ["*"] })],
          },
        }),
      ],
      async () => {
        const metadata = { name: `${on.id}-x`, labels: { case: on.id } }
        await on.create(
          "validatingadmissionpolicybindings",
          { metadata, spec: { policyName: "none", validationActions: ["Deny"] } },
          dry,
        )
        await on.create("clusterroles", { metadata, rules: [] }, dry)
      },
    ),
  libraries: on =>
    under(
      on,
      [
        validating(
          [
            "sets.intersects(['a'], ['b'])",
            "sets.contains([1, 2], [1]) ? 'contains' : ''",
            "object.data.transformList(key, value, key + '=' + value).size()",
            "['a', 'b'].transformList(i, item, i > 0, string(i) + item)[0]",
            "{'x': 1, 'y': 2}.transformMap(key, value, value > 1, value * 2)['y']",
            "[1, 2].exists(i, item, i == item)",
            "['a', 'b'].all(i, item, i < 2)",
            "quantity('1Gi').isGreaterThan(quantity('1M'))",
            "'a1b2'.findAll('[0-9]').join('-')",
            "[3, 1].min() + [1, 2].sum()",
            "'A-B'.lowerAscii().replace('-', '+').charAt(1)",
            "optional.none().orValue('none')",
            "object.data[?'nothing'].hasValue()",
            "timestamp('2026-01-01T00:00:00Z').getFullYear()",
          ]
            .map((expression, index) => [`object.data.n == '${index}'`, expression] as const)
            .map(([is, expression]) => ({ expression: `!(${is})`, messageExpression: `string(${expression})` })),
        ),
      ],
      async () => {
        for (let n = 0; n < 14; n++) await on.create("configmaps", configMap("a", { n: String(n) }), dry)
      },
    ),
  "kubectl and a refusal": on =>
    under(
      on,
      [
        validating([{ expression: "!has(object.data.bad)", message: "that is bad", reason: "Forbidden" }]),
        validating([{ expression: "!has(object.data.odd)", message: "that is odd" }], {}, [
          { validationActions: ["Warn"] },
        ]),
      ],
      async () => {
        on.file("bad.yaml", configMap("bad", { bad: "1" }))
        on.file("odd.yaml", configMap("odd", { odd: "1" }))
        await on.kubectl(["apply", "-f", "bad.yaml"])
        await on.kubectl(["apply", "-f", "odd.yaml"])
        await on.kubectl(["create", "configmap", "bad", "--from-literal=bad=1"])
      },
    ),
})

const policy = (fields: Json): Json => ({
  metadata: { name: "a" },
  spec: { matchConstraints: { resourceRules: [rule("configmaps")] }, validations: [{ expression: "true" }], ...fields },
})

export const policyObjects = topic("policy objects", "kinds", {
  "validating policies that are refused": async on => {
    const bad: Json[] = [
      { validations: [{ expression: "" }] },
      { validations: [{ expression: "object.a <" }] },
      { validations: [{ expression: "unknown.a == 1" }] },
      { validations: [{ expression: "1 + 1" }] },
      { validations: [{ expression: "object.spec.flag" }] },
      { validations: [{ expression: "params.a == 1" }] },
      { validations: [{ expression: "variables.a == 1" }] },
      { validations: [{ expression: "variables.b == 1" }], variables: [{ name: "a", expression: "1" }] },
      { validations: [{ expression: "request.unknown == 1" }] },
      { validations: [{ expression: "true", messageExpression: "1" }] },
      { validations: [{ expression: "true", messageExpression: "authorizer.path('/').check('get').reason()" }] },
      { validations: [{ expression: "true", message: " " }] },
      { validations: [{ expression: "true", message: "a\nb" }] },
      { validations: [{ expression: "true", reason: "Because" }] },
      {
        variables: [
          { name: "a-b", expression: "1" },
          { name: "", expression: "" },
        ],
      },
      { failurePolicy: "Maybe" },
      {
        matchConditions: [
          { name: "a b", expression: "1" },
          { name: "c", expression: "true" },
          { name: "c", expression: "" },
        ],
      },
      { paramKind: { apiVersion: "a/b/c", kind: "" } },
      { matchConstraints: {} },
      { matchConstraints: { resourceRules: [{}] } },
      {
        matchConstraints: {
          resourceRules: [rule("configmaps", ["SOMETIMES"], { scope: "Galaxy", apiGroups: ["*", "apps"] })],
          matchPolicy: "Roughly",
        },
      },
    ]
    for (const fields of bad) await on.create("validatingadmissionpolicies", policy(fields), dry)
  },
  "bindings that are refused": async on => {
    const bad: Json[] = [
      {},
      { policyName: "a_b", validationActions: [] },
      { policyName: "a", validationActions: ["Deny", "Warn"] },
      { policyName: "a", validationActions: ["Deny", "Deny", "Shout"] },
      { policyName: "a", validationActions: ["Deny"], paramRef: {} },
      {
        policyName: "a",
        validationActions: ["Deny"],
        paramRef: { name: "a", selector: {}, parameterNotFoundAction: "Maybe" },
      },
    ]
    for (const spec of bad) await on.create("validatingadmissionpolicybindings", { metadata: { name: "a" }, spec }, dry)
  },
  "mutating policies that are refused": async on => {
    const bad: Json[] = [
      { mutations: [] },
      { reinvocationPolicy: undefined },
      { mutations: [{ patchType: "Merge" }] },
      { mutations: [{ patchType: "JSONPatch" }] },
      { mutations: [{ patchType: "JSONPatch", jsonPatch: { expression: "1" } }] },
      { mutations: [{ patchType: "ApplyConfiguration", applyConfiguration: { expression: "{'a': 1}" } }] },
      {
        mutations: [
          {
            patchType: "ApplyConfiguration",
            applyConfiguration: { expression: "Object{}" },
            jsonPatch: { expression: "[]" },
          },
        ],
      },
      { matchConstraints: { resourceRules: [rule("configmaps", ["DELETE"])] } },
    ]
    for (const fields of bad) {
      const mutations = [{ patchType: "ApplyConfiguration", applyConfiguration: { expression: "Object{}" } }]
      const spec = {
        mutations,
        reinvocationPolicy: "Never",
        matchConstraints: policy({}).spec.matchConstraints,
        ...fields,
      }
      await on.create("mutatingadmissionpolicies", { metadata: { name: "a" }, spec }, dry)
    }
  },
})
