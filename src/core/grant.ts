/** The role by which a namespace lets us change its objects, and the name of every binding of it (`aim grant`). */
export const grantName = "aim-target"

/** The Role by which a namespace lets us read Secrets that Canaries, MetricTemplates and AlertProviders name. */
export const secretsGrantName = "aim-secrets"
