// Transport: messages between the processes of a job, as the module for MPI gives them
// (libhalftone_mpi.so, distributed/mpi/). Plain C, so that the module shares no class with the
// program: it needs neither its version of the library nor its compiler.
#pragma once

#include <stddef.h>

extern "C" {

// Every function that gives an int gives 0, or a number that error_text explains.
struct HalftoneTransport {
  int abi;               // kTransportAbi; read first, and the rest only if it is that
  const char* name;      // "Open MPI v4.1.4, ..."
  size_t request_bytes;  // of what `request` points to: one message under way
  size_t max_message;    // bytes of one message
  int max_tag;           // tags are 0..max_tag

  // Once, before the others. Any thread may call later, one at a time.
  int (*init)(int* rank, int* size, int* local_rank, int* local_size);
  // The memory belongs to the message until `test` says that it is done.
  int (*send)(const void* data, size_t bytes, int to, int tag, void* request);
  int (*receive)(void* data, size_t bytes, int from, int tag, void* request);
  int (*test)(void* request, int* done);
  // Waits for all other ranks to call it.
  int (*finalize)(void);
  // Ends all processes of the job.
  void (*abort)(int code);
  void (*error_text)(int error, char* text, size_t bytes);
};

// The module's only symbol, a function of this type.
typedef const struct HalftoneTransport* HalftoneTransportEntry(void);

}  // extern "C"

namespace halftone::distributed {

inline constexpr int kTransportAbi = 1;
inline constexpr char kTransportEntry[] = "halftone_transport";

}  // namespace halftone::distributed
