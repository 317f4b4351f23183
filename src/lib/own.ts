/** The value of a record under an untrusted name: `constructor` is a name, and inherited properties do not count. */
export const ownValue = <T>(record: Readonly<Record<string, T>> | null | undefined, name: string): T | undefined =>
  record && Object.hasOwn(record, name) ? record[name] : undefined
