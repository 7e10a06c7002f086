/** The suites with a script of their own: they take minutes, or need strace. */
export default {
  files: ['dist/test/{crash,power,race}/**/*.test.js'],
  timeout: '30m',
  workerThreads: false,
};
