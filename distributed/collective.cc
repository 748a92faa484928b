#include "halftone/distributed/collective.h"

#include <algorithm>

#include "halftone/core/check.h"

namespace halftone::distributed {

Collective::Collective(Communicator& communicator, const char* what, int turns)
    : communicator_(communicator),
      what_(what),
      turns_(turns),
      round_(communicator.NewRound()),
      parts_(static_cast<size_t>(communicator.size())),
      turn_(turns) {}

Collective::~Collective() { std::erase(communicator_.under_way_, this); }

void Collective::Begin(void* buffer) {
  HT_CHECK(is_idle_, "an exchange is started again before it was waited for");
  is_idle_ = false;
  buffer_ = static_cast<char*>(buffer);
  communicator_.under_way_.push_back(this);
  for (int t = 0; t < turns_; ++t) tags_[t] = communicator_.NextTag();
  turn_ = 0;
  StartTurn();
}

void Collective::StartTurn() {
  FillParts(turn_, absl::MakeSpan(parts_));
  if (!communicator_.status().ok()) return;
  const absl::Status started = round_->Start(parts_, tags_[turn_]);
  if (!started.ok()) communicator_.Fail(Annotate(started, Concat(what_, ": "))).IgnoreError();
}

void Collective::Advance() {
  if (!under_way() || !communicator_.status().ok()) return;
  const absl::StatusOr<bool> done = round_->Test();
  if (!done.ok()) {
    communicator_.Fail(Annotate(done.status(), Concat(what_, ": "))).IgnoreError();
    return;
  }
  if (!*done) return;
  EndTurn(turn_++);
  if (under_way()) StartTurn();
}

absl::Status Collective::Wait(bool* failed) {
  absl::Status status;
  while (under_way()) {
    const int before = turn_;
    status = communicator_.Wait(*round_, what_);
    if (!status.ok()) break;
    // Progress, which the wait calls, may have gone on already.
    if (turn_ == before) Advance();
  }
  std::erase(communicator_.under_way_, this);
  turn_ = turns_;
  is_idle_ = true;
  HT_RETURN_IF_ERROR(status);
  *failed = HasFailed();
  return absl::OkStatus();
}

}  // namespace halftone::distributed
