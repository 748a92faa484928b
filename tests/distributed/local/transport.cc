// A transport for jobs of tests where MPI is not, as under sanitizers: messages are files in one folder,
// HALFTONE_LOCAL_JOB, which tests/distributed/local/job.cc makes. A message appears there whole, by a rename,
// and goes when it has been read.
#include "halftone/distributed/transport.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <tuple>

namespace {

constexpr int kNoFile = 1, kOtherSize = 2;

struct Request {
  char path[192];
  void* data;  // null: sent
  size_t bytes;
};

struct Place {
  std::string folder;
  int rank = 0, size = 1;
  // Messages so far by other rank and tag: those of one pair and tag arrive in their order.
  std::map<std::pair<int, int>, int> sent, received;
};

Place& Here() {
  static auto* const place = new Place;
  return *place;
}

int Number(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

std::string Path(int from, int to, int tag, int number) {
  char name[96];
  std::snprintf(name, sizeof(name), "/%d_%d_%d_%d", from, to, tag, number);
  return Here().folder + name;
}

int Init(int* rank, int* size, int* local_rank, int* local_size) {
  Place& here = Here();
  const char* const folder = std::getenv("HALFTONE_LOCAL_JOB");
  if (folder == nullptr) return kNoFile;
  here.folder = folder;
  here.rank = Number("OMPI_COMM_WORLD_RANK", 0);
  here.size = Number("OMPI_COMM_WORLD_SIZE", 1);
  *rank = *local_rank = here.rank;
  *size = *local_size = here.size;
  return 0;
}

int Send(const void* data, size_t bytes, int to, int tag, void* request) {
  Place& here = Here();
  const std::string path = Path(here.rank, to, tag, here.sent[{to, tag}]++);
  const std::string written = path + ".part";
  FILE* const file = std::fopen(written.c_str(), "wb");
  if (file == nullptr) return kNoFile;
  const bool whole = std::fwrite(data, 1, bytes, file) == bytes;
  if (std::fclose(file) != 0 || !whole) return kNoFile;
  if (std::rename(written.c_str(), path.c_str()) != 0) return kNoFile;
  *static_cast<Request*>(request) = {};
  return 0;
}

int Receive(void* data, size_t bytes, int from, int tag, void* request) {
  Place& here = Here();
  Request& r = *static_cast<Request*>(request);
  r = {};
  const std::string path = Path(from, here.rank, tag, here.received[{from, tag}]++);
  std::strncpy(r.path, path.c_str(), sizeof(r.path) - 1);
  r.data = data;
  r.bytes = bytes;
  return 0;
}

int Test(void* request, int* done) {
  Request& r = *static_cast<Request*>(request);
  *done = 1;
  if (r.data == nullptr) return 0;
  const int file = open(r.path, O_RDONLY);
  *done = file >= 0 ? 1 : 0;
  if (file < 0) return 0;
  struct stat status;
  const bool fits = fstat(file, &status) == 0 && static_cast<size_t>(status.st_size) == r.bytes;
  const bool read_all = fits && read(file, r.data, r.bytes) == static_cast<ssize_t>(r.bytes);
  close(file);
  unlink(r.path);
  r.data = nullptr;
  return read_all ? 0 : kOtherSize;
}

// Each tells every other one that it is leaving, and waits to be told.
int Finalize() {
  const Place& here = Here();
  constexpr int kLeaving = -1;
  for (int other = 0; other < here.size; ++other) {
    if (other == here.rank) continue;
    Request request;
    char word = 0;
    if (const int error = Send(&word, 1, other, kLeaving, &request)) return error;
  }
  for (int other = 0; other < here.size; ++other) {
    if (other == here.rank) continue;
    Request request;
    char word = 0;
    Receive(&word, 1, other, kLeaving, &request);
    for (int done = 0; done == 0;) {
      if (const int error = Test(&request, &done)) return error;
      usleep(1000);
    }
  }
  return 0;
}

// The launcher ends the others.
void Abort(int code) { _exit(code); }

void ErrorText(int error, char* text, size_t bytes) {
  std::snprintf(text, bytes, "%s",
                error == kNoFile ? "no folder for messages" : "a message of another size");
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const HalftoneTransport* halftone_transport() {
  static const HalftoneTransport transport = {
      halftone::distributed::kTransportAbi,
      "files",
      sizeof(Request),
      size_t{1} << 20,
      32767,
      &Init,
      &Send,
      &Receive,
      &Test,
      &Finalize,
      &Abort,
      &ErrorText,
  };
  return &transport;
}
