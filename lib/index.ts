/** The public library: everything a harness author may rely on, and nothing else. */
export { DurableError, hasCode, isDurableError } from './errors.js';
export type { AnyDurableError, ErrorCode, ErrorFields, HolderSummary } from './errors.js';
export { EVENT_TABLE, FORMAT_VERSION, SCHEMAS } from './event.js';
export type {
  Event,
  EventOf,
  EventType,
  FileState,
  Image,
  InvocationState,
  ProcessRecord,
  Recorded,
} from './event.js';
export { ExactJson } from './exact-json.js';
export { canonicalJson, chainNext, chainStart, digest } from './canonical.js';
export { systemHost } from './host.js';
export type { Host, HostIdentity } from './host.js';
export { openRepository, Repository } from './repository.js';
export type { RunTurn } from './repository.js';
export type { GateAnswer, GatedCall, OpenCall } from './turn/open-call.js';
export type { Turn } from './turn/turn.js';
export type { Answer, DoubtDecision, DoubtfulCall } from './turn/rerun.js';
export type { ManualCheckpoint } from './turn/operation.js';
export type { TurnEnd } from './turn/end.js';
export type { StartTurn } from './turn/start.js';
export type { Call, CallEnd, IntendedPath } from './turn/call.js';
export type { Ask, Asked } from './turn/gate.js';
export type { Change } from './files/transaction.js';
export type { TakenCheckpoint } from './files/checkpoint.js';
export type { Compared, Difference, LeftOut } from './files/diff.js';
export type { Restored, RestoreRequest } from './files/restore.js';
export type { Storage } from './git/storage.js';
export type { ListedApproval, Resolution } from './decisions/approval.js';
export type { Comparison, ListedConflict, Side } from './decisions/conflict.js';
export type { Check, CheckRequest } from './decisions/check.js';
export type { ClaimCheck, ClaimVerdict } from './decisions/claim.js';
export type { Claim } from './decisions/claim-shape.js';
export type { ConflictAnswer, ResolvedConflict } from './turn/resolve.js';
export type {
  Conversation,
  ConversationItem,
  ConversationTurn,
  RewindRequest,
  Rewound,
} from './decisions/rewind.js';
export { fold, initialState } from './ledger/fold.js';
export type { ApprovalState, ConflictState, TaskState, TurnState } from './ledger/state.js';
export { UsageFolding } from './ledger/usage.js';
export type { UsageRow } from './ledger/usage.js';
export { UsageDetail } from './ledger/usage-detail.js';
export type { CallUsage, TurnUsage } from './ledger/usage-detail.js';
export type { Finding, Verification } from './ledger/verify.js';
export type { InterruptedTurn, RecoverReport, RepairAction, RepairResult } from './recovery/document.js';
export type { TurnsAround } from './recovery/report.js';
export type { FoundOrphans } from './orphans/find.js';
export type { Orphan } from './orphans/orphan.js';
export type { StoppedOrphans } from './orphans/stop.js';
export type { LeaseStatus, Status, TurnStatus } from './status.js';
