#include "halftone/passes/memory/budget_search.h"

#include <algorithm>
#include <queue>
#include <tuple>

#include "halftone/passes/layout/storage_alias.h"

namespace halftone::passes {
namespace {

// What a processor computes while it moves a byte: 330 GFLOP/s and 20 GB/s on two cores, 60 TFLOP/s
// and 4.8 TB/s on an H200.
constexpr double kFlopsPerByte = 16;
// How many times faster products of 16-bit values are than those of f32, which set the pace above:
// 4 to 5 times with AMX, 16 on an H200.
constexpr double kLowSpeed = 4;
// How many times slower the operations of a function are than those of a product, since each waits
// for the one before: 7 to 13 times in a gelu on AVX-512.
constexpr double kFunctionSlowness = 8;
// An operand of fewer bytes than this share of what is dropped is kept, not made anew.
constexpr int64_t kSmallShare = 16;
// Values that one drop may touch, so that a try takes bounded time.
constexpr size_t kMaxTouched = 256;
constexpr int kMaxRounds = 12;
constexpr double kNotDropped = -1;

// Whether the plan has it written over an operand of its node.
bool IsOverOperand(const ValueLife& life, const ValueLives& lives, const MemoryPlan& plan) {
  const Slot& slot = SlotOf(life, plan);
  const std::vector<ir::Value>& operands = life.value.node->inputs();
  return std::any_of(operands.begin(), operands.end(), [&](const ir::Value& v) {
    const Slot& operand = SlotOf(lives[lives.Of(v)], plan);
    return operand.space == Slot::Space::kArena && operand.offset == slot.offset;
  });
}

BytesOverTime BytesOf(const ir::Graph& graph, const ValueLives& lives, const MemoryPlan& plan,
                      const std::vector<bool>& in_arena) {
  BytesOverTime bytes(lives.end() + 1);
  for (int i = 0; i < lives.size(); ++i) {
    if (!in_arena[static_cast<size_t>(i)]) continue;
    const ValueLife& life = lives[i];
    const int from = life.first + (IsOverOperand(life, lives, plan) ? 1 : 0);
    bytes.Add(from, life.last, life.bytes);
  }
  for (size_t p = 0; p < graph.nodes().size(); ++p) {
    bytes.Add(static_cast<int>(p), static_cast<int>(p), plan.nodes[p].workspace_bytes);
  }
  return bytes;
}

std::vector<bool> InArena(const ValueLives& lives, const MemoryPlan& plan) {
  std::vector<bool> in_arena;
  for (const ValueLife& life : lives.lives()) {
    in_arena.push_back(SlotOf(life, plan).space == Slot::Space::kArena);
  }
  return in_arena;
}

}  // namespace

double Effort(const ir::Node& node) {
  const ir::Cost cost = ir::CostOf(node);
  const bool is_product = node.op().fusion == ir::FusionClass::kContraction ||
                          node.op().amp.f16 == ir::AmpClass::kAllow;
  const bool is_low = node.num_inputs() > 0 && IsLow(node.input_type(0).dtype);
  const double pace = !is_product ? kFunctionSlowness : is_low ? 1 / kLowSpeed : 1;
  return pace * cost.flops + kFlopsPerByte * cost.bytes;
}

BudgetSearch::BudgetSearch(const ir::Graph& graph, const ValueLives& lives, const MemoryPlan& plan)
    : lives_(lives),
      in_arena_(InArena(lives, plan)),
      bytes_at_first_(BytesOf(graph, lives, plan, in_arena_)),
      bytes_(bytes_at_first_) {
  for (const ValueLife& life : lives.lives()) effort_.push_back(Effort(*life.value.node));
  peak_bytes_ = bytes_.peak();
}

void BudgetSearch::Begin() {
  bytes_ = bytes_at_first_;
  states_.clear();
  for (const ValueLife& life : lives_.lives()) {
    states_.push_back({false, life.again, life.again < 0 ? -1 : life.last});
  }
}

bool BudgetSearch::CoversPeak(int life) const {
  const int peak = bytes_.peak_position();
  return lives_[life].turn < peak && peak < states_[static_cast<size_t>(life)].again;
}

BudgetSearch::Result BudgetSearch::Run(int64_t target, double worst) {
  Begin();
  Result result;
  // Effort over bytes freed as known so far, how often it was put off, which one.
  using Candidate = std::tuple<double, int, int>;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
  std::vector<int> waiting;
  for (int i = 0; i < lives_.size(); ++i) {
    const ValueLife& life = lives_[i];
    if (life.repeatable && IsInArena(i) && life.bytes > 0 && life.again > life.turn + 1) {
      waiting.push_back(i);
    }
  }
  bool any = true;
  for (int round = 0; round < kMaxRounds && any && bytes_.peak() > target; ++round) {
    any = false;
    for (const int life : waiting) {
      const double ratio =
          effort_[static_cast<size_t>(life)] / static_cast<double>(lives_[life].bytes);
      candidates.emplace(ratio, 0, life);
    }
    waiting.clear();
    while (!candidates.empty() && bytes_.peak() > target) {
      const auto [ratio, put_off, life] = candidates.top();
      candidates.pop();
      if (states_[static_cast<size_t>(life)].dropped) continue;
      if (!CoversPeak(life)) {
        waiting.push_back(life);
        continue;
      }
      const double next = candidates.empty() ? std::numeric_limits<double>::infinity()
                                             : std::get<0>(candidates.top());
      const bool last_call = put_off >= 3;
      const double found =
          TryToDrop(life, target, last_call ? worst : std::min(worst, std::max(ratio, next)));
      if (found == kNotDropped || found > worst) {
        waiting.push_back(life);
      } else if (!states_[static_cast<size_t>(life)].dropped) {
        candidates.emplace(found, put_off + 1, life);
      } else {
        result.effort += tried_effort_;
        any = true;
      }
    }
    for (; !candidates.empty(); candidates.pop()) waiting.push_back(std::get<2>(candidates.top()));
    std::sort(waiting.begin(), waiting.end());
  }
  result.repeats = Chosen();
  result.peak_bytes = bytes_.peak();
  return result;
}

double BudgetSearch::TryToDrop(int life, int64_t target, double worst) {
  const int peak = bytes_.peak_position();
  const int64_t before = bytes_.peak();
  added_.clear();
  changed_.clear();
  to_read_.clear();
  tried_effort_ = 0;
  Drop(life);
  while (!to_read_.empty() && changed_.size() <= kMaxTouched) {
    const Read read = to_read_.back();
    to_read_.pop_back();
    ReadAgain(read, lives_[life].bytes);
  }
  const int64_t freed = before - bytes_.At(peak);
  if (!to_read_.empty() || freed <= 0 || !Fits(target)) {
    Undo();
    return kNotDropped;
  }
  const double ratio = tried_effort_ / static_cast<double>(freed);
  if (ratio > worst) Undo();
  return ratio;
}

void BudgetSearch::Drop(int life) {
  State state = states_[static_cast<size_t>(life)];
  const ValueLife& known = lives_[life];
  Add(known.turn + 1, state.again - 1, -known.bytes);
  state.dropped = true;
  Change(life, state);
  tried_effort_ += effort_[static_cast<size_t>(life)];
  ReadOperands(life);
}

// A repetition of its node reads them where it is read first.
void BudgetSearch::ReadOperands(int life) {
  const int position = states_[static_cast<size_t>(life)].again;
  for (const ir::Value& v : lives_[life].value.node->inputs()) {
    to_read_.push_back({lives_.Of(v), position});
  }
}

void BudgetSearch::ReadAgain(const Read& read, int64_t bytes_dropped) {
  const auto [life, position] = read;
  const ValueLife& known = lives_[life];
  if (!IsInArena(life) || position <= known.turn) return;  // there anyway
  State state = states_[static_cast<size_t>(life)];
  if (state.dropped) {
    const bool earlier = position < state.again;
    if (earlier) Add(position, state.again - 1, known.bytes);
    if (position > state.last) Add(state.last + 1, position, known.bytes);
    if (!earlier && position <= state.last) return;
    state.again = std::min(state.again, position);
    state.last = std::max(state.last, position);
    Change(life, state);
    if (earlier) ReadOperands(life);
    return;
  }
  const bool has_readers = state.again >= 0;
  const int end = has_readers ? state.last : known.turn;
  const bool small = known.bytes * kSmallShare <= bytes_dropped;
  if (position > end && known.repeatable && !small) {
    state.dropped = true;
    if (has_readers) Add(known.turn + 1, state.again - 1, -known.bytes);
    Add(has_readers ? end + 1 : position, position, known.bytes);
  } else {
    Add(end + 1, position, known.bytes);
  }
  state.again = has_readers ? std::min(state.again, position) : position;
  state.last = std::max(state.last, position);
  Change(life, state);
  if (!state.dropped) return;
  tried_effort_ += effort_[static_cast<size_t>(life)];
  ReadOperands(life);
}

// Whether no more than `target` lives wherever the try has added more than it has freed.
bool BudgetSearch::Fits(int64_t target) const {
  std::vector<std::pair<int, int64_t>> changes;
  for (const Added& added : added_) {
    changes.emplace_back(added.from, added.bytes);
    changes.emplace_back(added.to + 1, -added.bytes);
  }
  std::sort(changes.begin(), changes.end());
  int64_t more = 0;
  for (size_t i = 0; i + 1 < changes.size(); ++i) {
    more += changes[i].second;
    const int from = changes[i].first, to = changes[i + 1].first - 1;
    if (more > 0 && from <= to && bytes_.Max(from, to) > target) return false;
  }
  return true;
}

void BudgetSearch::Change(int life, const State& state) {
  State& now = states_[static_cast<size_t>(life)];
  changed_.emplace_back(life, now);
  now = state;
}

void BudgetSearch::Add(int from, int to, int64_t bytes) {
  if (from > to || bytes == 0) return;
  bytes_.Add(from, to, bytes);
  added_.push_back({from, to, bytes});
}

void BudgetSearch::Undo() {
  for (const Added& added : added_) bytes_.Add(added.from, added.to, -added.bytes);
  for (auto it = changed_.rbegin(); it != changed_.rend(); ++it) {
    states_[static_cast<size_t>(it->first)] = it->second;
  }
}

Repeats BudgetSearch::Chosen() const {
  Repeats repeats;
  for (int i = 0; i < lives_.size(); ++i) {
    if (!states_[static_cast<size_t>(i)].dropped) continue;
    const ir::Value& v = lives_[i].value;
    repeats[{v.node->id(), v.index}] = {states_[static_cast<size_t>(i)].again,
                                        Concat(v.type().num_bytes(), " bytes are not held for ",
                                               ir::CostOf(*v.node).flops, " flops")};
  }
  return repeats;
}

}  // namespace halftone::passes
