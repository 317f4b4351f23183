/** What a record has under a name that others chose: `constructor` is a name, and what objects inherit is no value. */
export const ownValue = <T>(record: Readonly<Record<string, T>> | null | undefined, name: string): T | undefined =>
  record && Object.hasOwn(record, name) ? record[name] : undefined
