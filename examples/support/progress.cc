#include "halftone/examples/support/progress.h"

#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "halftone/distributed/distributed.h"

namespace halftone::example {
namespace {

// Columns of a terminal that can redraw a line; 0: standard error is none.
int TerminalWidth() {
  const char* kind = std::getenv("TERM");
  if (isatty(STDERR_FILENO) == 0 || kind == nullptr || std::string(kind) == "dumb") return 0;
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

constexpr int kBarWidth = 30;
constexpr int kLineWidth = 76;  // of the bar and its text: a line that wraps cannot be redrawn

}  // namespace

Progress::Progress(int epochs, int64_t steps_per_epoch)
    : epochs_(epochs),
      steps_per_epoch_(steps_per_epoch),
      quiet_(distributed::Rank() > 0),
      redraws_(TerminalWidth() >= kLineWidth),
      last_(Clock::now()) {}

void Progress::ClearBar() {
  if (bar_shown_) std::fputs("\r\x1b[K", stderr);
  bar_shown_ = false;
}

void Progress::Step(int epoch, int64_t images, double loss) {
  const Clock::time_point now = Clock::now();
  if (steps_ > 0) {
    timed_seconds_ += std::chrono::duration<double>(now - last_).count();
    timed_images_ += images;
  }
  last_ = now;
  ++steps_;
  ++epoch_step_;
  loss_sum_ += loss;
  if (quiet_) return;
  const double mean_loss = loss_sum_ / static_cast<double>(epoch_step_);
  if (redraws_ && (epoch_step_ % 5 == 0 || epoch_step_ == steps_per_epoch_)) {
    const int filled = static_cast<int>(kBarWidth * epoch_step_ / steps_per_epoch_);
    std::fprintf(stderr, "\repoch %d/%d [%s%s] loss %.4f  %.0f images/s\x1b[K", epoch + 1, epochs_,
                 std::string(filled, '#').c_str(), std::string(kBarWidth - filled, '.').c_str(),
                 mean_loss, images_per_second());
    bar_shown_ = true;
  } else if (!redraws_ && epoch_step_ % 100 == 0) {
    std::fprintf(stderr, "epoch %d/%d step %lld/%lld loss %.4f\n", epoch + 1, epochs_,
                 static_cast<long long>(epoch_step_), static_cast<long long>(steps_per_epoch_),
                 mean_loss);
  }
}

void Progress::ScaleChanged(double from, double to) {
  if (quiet_) return;
  ClearBar();
  std::fprintf(stderr, "step %lld: loss scale %.9g -> %.9g\n", static_cast<long long>(steps_), from,
               to);
}

void Progress::EpochDone(int epoch, double accuracy) {
  ClearBar();
  if (!quiet_) {
    std::fprintf(stderr, "epoch %d/%d: ", epoch + 1, epochs_);
    // A resumed run may have had nothing left to train on.
    if (epoch_step_ > 0) {
      std::fprintf(stderr, "loss %.4f, ", loss_sum_ / static_cast<double>(epoch_step_));
    }
    std::fprintf(stderr, "test accuracy %.4f, %.0f images/s\n", accuracy, images_per_second());
  }
  loss_sum_ = 0;
  epoch_step_ = 0;
  last_ = Clock::now();
}

double Progress::images_per_second() const {
  return timed_seconds_ > 0 ? static_cast<double>(timed_images_) / timed_seconds_ : 0;
}

double PeakRssMib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;  // Linux reports KiB
}

}  // namespace halftone::example
