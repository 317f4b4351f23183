import type { SourceDetails } from "#web/wire.ts"
import { DetailsFrame } from "../../DetailsFrame.tsx"
import type { Feed } from "../../feeds.ts"
import { Ago, Conditions, Image, Section, Table, Until } from "../../parts.tsx"
import { useSurroundings } from "../../surroundings.tsx"
import { WhyShown } from "../../Why.tsx"
import { counted } from "../../words.ts"

type Container = SourceDetails["containers"][number]

/** Which containers were switched where, since when and why, what was found bad, and when it is tried again. */
export function Details({ feed }: { feed: Feed }) {
  const { details } = feed
  const source = details?.source
  const failing = source?.containers.filter(({ incident }) => incident).length ?? 0
  return (
    <DetailsFrame feed={feed}>
      {source && (
        <>
          <Section title="Incidents" note={counted(failing, "container")}>
            <Table
              label="Incidents"
              empty="Every container is pulled from where its workload says."
              items={source.containers}
              columns={[
                {
                  head: "Container",
                  cell: ({ workload, container }) => (
                    <>
                      <b>{workload}</b> <span class="dim">{container}</span>
                    </>
                  ),
                },
                { head: "Pulled from", cell: ({ from }) => <Image image={from} /> },
                { head: "Why", cell: container => <Cause container={container} />, class: "words" },
                { head: "Since", cell: ({ incident }) => <Ago at={incident?.since} />, class: "time" },
                { head: "Found bad", cell: ({ incident }) => <Bad images={incident?.bad ?? []} /> },
                { head: "Tried again", cell: container => <Again container={container} />, class: "time" },
              ]}
            />
          </Section>
          <Section title="Switches" note={counted(source.switches.length, "switch", "switches")}>
            <Table
              label="Switches"
              empty="No container was switched."
              items={source.switches}
              columns={[
                { head: "When", cell: ({ at }) => <Ago at={at} />, class: "time" },
                {
                  head: "Container",
                  cell: ({ workload, container }) => (
                    <>
                      <b>{workload}</b> <span class="dim">{container}</span>
                    </>
                  ),
                },
                { head: "From", cell: ({ from }) => <Image image={from} /> },
                { head: "To", cell: ({ to }) => <Image image={to} /> },
                { head: "Reason", cell: ({ reason }) => reason },
                { head: "Pods", cell: ({ pods }) => pods ?? "", class: "time" },
              ]}
            />
          </Section>
          <Section title="Equivalent repositories">
            <ul class="groups">
              {source.repositories.map(({ equivalent }) => (
                <li>
                  {equivalent.map((repository, at) => (
                    <>
                      {at > 0 && <span class="dim"> = </span>}
                      <code>{repository}</code>
                    </>
                  ))}
                </li>
              ))}
            </ul>
          </Section>
        </>
      )}
      {details?.why && (
        <Section title="Why">
          <WhyShown why={details.why} />
        </Section>
      )}
      {details && <Conditions conditions={details.conditions} />}
    </DetailsFrame>
  )
}

function Cause({ container: { incident } }: { container: Container }) {
  if (!incident) return <span class="dim">as its workload says</span>
  return (
    <>
      <b>{incident.reason}</b>: <Image image={incident.image} />
      {incident.attempts > 0 && <small class="dim"> {counted(incident.attempts, "attempt")}</small>}
    </>
  )
}

const Bad = ({ images }: { images: string[] }) => (
  <>
    {images.map(image => (
      <div>
        <Image image={image} />
      </div>
    ))}
  </>
)

function Again({ container: { incident } }: { container: Container }) {
  const { now } = useSurroundings()
  if (!incident) return null
  if (incident.healthySince !== undefined)
    return (
      <>
        healthy since <Ago at={incident.healthySince} />
      </>
    )
  if (incident.tryAgainAt === undefined) return null
  return incident.tryAgainAt <= now.value ? (
    <>now</>
  ) : (
    <>
      in <Until at={incident.tryAgainAt} />
    </>
  )
}
