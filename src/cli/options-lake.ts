import { lakeCommands, type OptionSpec } from './option-spec.ts'

/** Options that say where a lake lies and how its store is reached. */
export const lakeOptions: readonly OptionSpec[] = [
  {
    name: 'warehouse',
    value: 'LOCATION',
    environment: true,
    config: 'warehouse',
    commands: [...lakeCommands, 'demo'],
    about: 'where the lake lies: a path, file:///…, s3://bucket/prefix',
    standard: 'required; demo: ./sluice-demo',
  },
  {
    name: 'catalog',
    value: 'file',
    environment: true,
    config: 'catalog',
    commands: lakeCommands,
    about: 'what names the current metadata of a table',
    standard: 'file',
  },
  {
    name: 's3-endpoint',
    value: 'URL',
    environment: true,
    config: 's3: s3.endpoint',
    commands: lakeCommands,
    about: 'URL of S3: http://127.0.0.1:9000',
    standard: 'as AWS tools: AWS_ENDPOINT_URL_S3, profile',
  },
  {
    name: 's3-region',
    value: 'REGION',
    environment: true,
    config: 's3: s3.region',
    commands: lakeCommands,
    about: 'region of the bucket',
    standard: 'as AWS tools: AWS_REGION, profile; us-east-1 with an endpoint',
  },
  {
    name: 's3-path-style',
    value: 'yes|no',
    choices: ['yes', 'no'],
    environment: true,
    config: 's3: s3.path-style-access',
    commands: lakeCommands,
    about: 'whether the bucket stands in the path of URLs',
    standard: 'yes with an endpoint, else no',
  },
]
