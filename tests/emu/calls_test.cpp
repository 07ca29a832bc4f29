// SPDX-License-Identifier: MIT
//
// Functions with code of their own: calls through pointers and calls of oneself, in every order;
// what the emulator says of pointers that are none and of calls without an end; and the heap of
// malloc and free.

#include <gtest/gtest.h>

#include "tests/emu/every_order.h"
#include "tests/emu/report_says.h"

namespace {

using namespace emu_test;
using report::says;

std::string fault_of(FaultKind kind, const std::string& text) {
  std::string report;
  for (const Order& order : orders()) {
    Program program(text);
    std::vector<Buffer> buffers = {Buffer(4096), Buffer(4096)};
    Config config = config_of(1, 32);
    config.options.order = order;
    try {
      program.run(buffers, config);
      ADD_FAILURE() << "no fault in order " << name_of(order);
    } catch (const Fault& fault) {
      EXPECT_EQ(fault_name(fault.kind), std::string(fault_name(kind))) << fault.what();
      report = fault.what();
    }
  }
  return report;
}

// The n-th Fibonacci number by two calls of itself, and thrice, square and a function
// of two arguments.
const std::string kFunctions = R"(
.func (.param .b32 result) fibonacci(.param .b32 n)
{
.reg .pred %p<2>;
.reg .b32 %r<6>;
ld.param.u32 %r0, [n];
setp.lt.u32 %p0, %r0, 2;
@%p0 bra DONE;
add.u32 %r1, %r0, -1;
{
.param .b32 arg;
.param .b32 back;
st.param.b32 [arg], %r1;
call.uni (back), fibonacci, (arg);
ld.param.b32 %r2, [back];
}
add.u32 %r1, %r1, -1;
{
.param .b32 arg;
.param .b32 back;
st.param.b32 [arg], %r1;
call.uni (back), fibonacci, (arg);
ld.param.b32 %r3, [back];
}
add.u32 %r0, %r2, %r3;
DONE:
st.param.b32 [result], %r0;
ret;
}
.func (.param .b32 result) thrice(.param .b32 n)
{
.reg .b32 %r<2>;
ld.param.u32 %r0, [n];
mul.lo.u32 %r0, %r0, 3;
st.param.b32 [result], %r0;
ret;
}
.func (.param .b32 result) square(.param .b32 n)
{
.reg .b32 %r<2>;
ld.param.u32 %r0, [n];
mul.lo.u32 %r0, %r0, %r0;
st.param.b32 [result], %r0;
ret;
}
.func (.param .b32 result) sum(.param .b32 a, .param .b32 b)
{
.reg .b32 %r<2>;
ld.param.u32 %r0, [a];
ld.param.u32 %r1, [b];
add.u32 %r0, %r0, %r1;
st.param.b32 [result], %r0;
ret;
}
)";

std::string call_by_name(const std::string& function) {
  return R"(
    {
    .param .b32 arg;
    .param .b32 back;
    st.param.b32 [arg], %r10;
    call.uni (back), )" +
         function + R"(, (arg);
    ld.param.b32 %r11, [back];
    })";
}
// The function at %rd3 of %r10, to %r11; `guard` before the call.
std::string call_pointer(const std::string& guard = "",
                         const std::string& targets = ".callprototype (.param .b32 _) _ (.param .b32 _);") {
  return R"(
    {
    .param .b32 arg;
    .param .b32 back;
    st.param.b32 [arg], %r10;
    st.param.b32 [back], 77;
    known: )" +
         targets + "\n" + guard + R"( call (back), %rd3, (arg), known;
    ld.param.b32 %r11, [back];
    })";
}
const std::string kStore = "\nst.global.u32 [%rd2], %r11;";

TEST(Calls, OfOneself) {
  expect_always(kernel("rem.u32 %r10, %r0, 9;" + call_by_name("fibonacci") + kStore, kFunctions),
                config_of(2, 48), [](uint32_t thread) {
                  const uint32_t numbers[] = {0, 1, 1, 2, 3, 5, 8, 13, 21};
                  return numbers[thread % 48 % 9];
                });
}

// Lanes of a warp call different functions, some none.
TEST(Calls, ThroughPointers) {
  const std::string choose = R"(
    add.u32 %r10, %r3, 2;
    mov.u64 %rd3, thrice;
    mov.u64 %rd4, square;
    and.b32 %r12, %r3, 1;
    setp.eq.u32 %p0, %r12, 1;
    selp.b64 %rd3, %rd4, %rd3, %p0;
    setp.lt.u32 %p1, %r3, 20;)";
  const auto want = [](uint32_t thread) {
    const uint32_t n = thread % 32 + 2;
    return n - 2 >= 20 ? 77u : n % 2 ? n * n : 3 * n;
  };
  expect_always(kernel(choose + call_pointer("@%p1") + kStore, kFunctions), config_of(2, 64), want);
  expect_always(kernel(choose + call_pointer("@%p1", ".calltargets thrice, square;") + kStore, kFunctions),
                config_of(1, 64), want);
}

// Lanes that have called come together again behind the call.
TEST(Calls, MeetBehindTheCall) {
  const std::string body = R"(
    add.u32 %r10, %r3, 2;
    mov.u64 %rd3, thrice;
    mov.u64 %rd4, square;
    setp.lt.u32 %p0, %r3, 7;
    selp.b64 %rd3, %rd4, %rd3, %p0;)" +
                           call_pointer() + R"(
    activemask.b32 %r11;)" +
                           kStore;
  Program program(kernel(body, kFunctions));
  for (const uint32_t mask : run(program, config_of(1, 32), 32)) EXPECT_EQ(mask, 0xFFFFFFFFu);
}

TEST(Calls, OfWhatIsNoFunction) {
  const std::string known = "mov.u64 %rd5, thrice;\n";  // so that its address is taken
  const std::string null =
      fault_of(FaultKind::bounds,
               kernel("mov.u32 %r10, 1;\nmov.u64 %rd3, 0;" + known + call_pointer() + kStore, kFunctions));
  EXPECT_TRUE(says(null, "a call of address 0x0, where no function is")) << null;
  EXPECT_TRUE(says(null, "was not set")) << null;
  const std::string data =
      fault_of(FaultKind::bounds,
               kernel("mov.u32 %r10, 1;\nmov.u64 %rd3, %rd0;" + known + call_pointer() + kStore, kFunctions));
  EXPECT_TRUE(says(data, "where no function is")) << data;
}

TEST(Calls, OfAFunctionOfAnotherType) {
  const std::string report =
      fault_of(FaultKind::bounds,
               kernel("mov.u32 %r10, 1;\nmov.u64 %rd3, sum;\n" + call_pointer() + kStore, kFunctions));
  EXPECT_TRUE(says(report,
                   "a call of sum, which has 2 parameters and 1 result, as a function of 1 parameter and "
                   "1 result"))
      << report;
  const std::string unlisted = fault_of(
      FaultKind::bounds,
      kernel("mov.u32 %r10, 1;\nmov.u64 %rd3, square;\n" + call_pointer("", ".calltargets thrice;") + kStore,
             kFunctions));
  EXPECT_TRUE(says(unlisted, "a call of square, which .calltargets does not list")) << unlisted;
}

TEST(Calls, WithoutAnEnd) {
  const std::string forever = R"(
.func forever(.param .b32 n)
{
.local .align 8 .b8 array[4096];
.reg .b32 %r<2>;
ld.param.u32 %r0, [n];
{
.param .b32 arg;
st.param.b32 [arg], %r0;
call.uni forever, (arg);
}
ret;
}
)";
  const std::string body = "{\n.param .b32 arg;\nst.param.b32 [arg], 5;\ncall.uni forever, (arg);\n}";
  const std::string report = fault_of(FaultKind::bounds, kernel(body, forever));
  EXPECT_TRUE(says(report, "calls under way take more than 524288 bytes of local memory")) << report;
}

// A register of the function has no value on a second call either, and a result that none
// was given to.
TEST(Calls, WithoutAValue) {
  const std::string forgets = R"(
.func (.param .b32 result) forgets(.param .b32 n)
{
.reg .pred %p<1>;
.reg .b32 %r<3>;
ld.param.u32 %r0, [n];
setp.eq.u32 %p0, %r0, 1;
@%p0 mov.u32 %r1, 5;
st.param.b32 [result], %r1;
ret;
}
)";
  const std::string body = "mov.u64 %rd3, forgets;\nmov.u32 %r10, 1;" + call_pointer() +
                           "\nmov.u32 %r10, 2;" + call_pointer() + kStore;
  std::string text = kernel(body, forgets);
  const size_t second = text.rfind("known:");
  text.replace(second, 5, "again");
  text.replace(text.rfind("(arg), known"), 12, "(arg), again");
  const std::string report = fault_of(FaultKind::uninit_register, text);
  EXPECT_TRUE(says(report, "read register %r1, which had no value")) << report;
}

// ---- parameters in registers ----

const std::string kInRegisters = R"(
.func (.reg .b32 r) steps(.reg .b32 a, .reg .b64 at)
{
.reg .pred %q;
.reg .b32 %x;
ld.global.u32 %x, [at];
add.u32 r, %x, a;
setp.lt.u32 %q, a, 16;
@%q ret;
add.u32 r, r, 100;
}
.func (.param .b32 r) plus_one(.param .b32 a)
{
.reg .b32 %x;
ld.param.b32 %x, [a];
add.u32 %x, %x, 1;
st.param.b32 [r], %x;
ret;
}
.func (.reg .f32 r) times(.reg .f32 x, .reg .f32 y)
{
mul.f32 r, x, y;
ret;
}
.func (.reg .b32 r) sum_to(.reg .b32 n)
{
.reg .pred %q;
.reg .b32 %m, %s;
mov.u32 r, 0;
setp.eq.u32 %q, n, 0;
@%q ret;
sub.u32 %m, n, 1;
call (%s), sum_to, (%m);
add.u32 r, %s, n;
ret;
}
.func store(.reg .b64 at, .reg .b32 value)
{
st.global.u32 [at], value;
ret;
}
.func nothing()
{
ret;
}
)";
std::string with_registers(const std::string& body) { return kernel(body, kInRegisters); }
const std::string kStoreByCall = "call store, (%rd2, %r10);";

TEST(CallsWithRegisters, OfRegistersAndNumbers) {
  expect_always(
      with_registers("mad.wide.u32 %rd3, %r5, 4, %rd1;\ncall (%r10), steps, (%r3, %rd3);\n" + kStoreByCall +
                     "call nothing;"),
      config_of(2, 64),
      [](uint32_t thread) { return 1000 + thread + thread % 32 + (thread % 32 < 16 ? 0 : 100); },
      [] {
        Words in(128);
        for (uint32_t i = 0; i < 128; ++i) in[i] = 1000 + i;
        return in;
      }());
  expect_always(with_registers("call (%f0), times, (2.5, 0f40800000);\ncvt.rni.u32.f32 %r10, %f0;\n"
                               "call (_), times, (%f0, 1.0);\n" +
                               kStoreByCall),
                config_of(1, 32), [](uint32_t) { return 10; });
}

TEST(CallsWithRegisters, BesideParametersInMemory) {
  expect_always(
      with_registers("call (%r10), plus_one, (41);\ncall (%r10), plus_one, (%r10);\n" + kStoreByCall),
      config_of(1, 32), [](uint32_t) { return 43; });
  expect_always(with_registers(R"(
    {
    .param .b32 given; .param .b32 back;
    st.param.b32 [given], 6;
    call (back), sum_to, (given);
    ld.param.b32 %r10, [back];
    })" + kStoreByCall),
                config_of(1, 32), [](uint32_t) { return 21; });
}

TEST(CallsWithRegisters, UnderAGuardAndOfThemselves) {
  expect_always(
      with_registers("mov.u32 %r10, 7;\nsetp.lt.u32 %p0, %r3, 9;\n@%p0 call (%r10), sum_to, (%r3);\n" +
                     kStoreByCall),
      config_of(1, 64), [](uint32_t thread) {
        const uint32_t lane = thread % 32;
        return lane < 9 ? lane * (lane + 1) / 2 : 7;
      });
}

TEST(CallsWithRegisters, ThroughPointers) {
  expect_always(with_registers("mov.u64 %rd3, sum_to;\n"
                               "shape: .callprototype (.reg .b32 _) _ (.reg .b32 _);\n"
                               "call (%r10), %rd3, (4), shape;\n" +
                               kStoreByCall),
                config_of(1, 32), [](uint32_t) { return 10; });
}

TEST(CallsWithRegisters, GiveNoValueWhereNoneWasSet) {
  const std::string report =
      fault_of(FaultKind::uninit_register,
               kernel("call (%r10), forgets, (%r3);\nst.global.u32 [%rd2], %r10;\n",
                      ".func (.reg .b32 r) forgets(.reg .b32 a)\n{\n.reg .pred %q;\nsetp.eq.u32 %q, a, 3;\n"
                      "@%q ret;\nmov.u32 r, 1;\n}\n"));
  EXPECT_TRUE(says(report, "lane 3 reads register %r10, which was made of one without a value")) << report;
}

TEST(CallsWithRegisters, AreRefusedWithTheReason) {
  const std::string predicate =
      ".func (.reg .b32 r) chosen(.reg .pred a)\n{\nselp.b32 r, 1, 0, a;\nret;\n}\n";
  EXPECT_TRUE(says(fault_of(FaultKind::unsupported,
                            kernel("setp.eq.u32 %p0, %r3, 0;\ncall (%r10), chosen, (%p0);\n", predicate)),
                   "a predicate as a parameter"));
  EXPECT_TRUE(says(fault_of(FaultKind::unsupported, with_registers("call (%r10), sum_to, (%r3, %r3);\n")),
                   "these call parameters"));
  try {
    Program program(kernel("ld.global.u32 %r10, [%nowhere];\n"));
    ADD_FAILURE() << "no error";
  } catch (const std::runtime_error& error) {
    EXPECT_TRUE(
        says(error.what(),
             "an address may be a register, a variable or a number, and %nowhere is none of them here"));
  }
}

// ---- the heap ----

const std::string kHeap = R"(
.extern .func (.param .b64 func_retval0) malloc(.param .b64 a);
.extern .func free(.param .b64 a);
)";
std::string allocate(const std::string& bytes, const std::string& to) {
  return "\n{\n.param .b64 size;\n.param .b64 back;\nst.param.b64 [size], " + bytes +
         ";\ncall.uni (back), malloc, (size);\nld.param.b64 " + to + ", [back];\n}\n";
}
std::string release(const std::string& pointer) {
  return "\n{\n.param .b64 gone;\nst.param.b64 [gone], " + pointer + ";\ncall.uni free, (gone);\n}\n";
}

TEST(Heap, BlocksOfThreads) {
  const std::string body = allocate("12", "%rd3") + R"(
    st.u32 [%rd3], %r5;
    st.global.u32 [%rd3+8], %r3;
    ld.global.u32 %r10, [%rd3];
    ld.u32 %r11, [%rd3+8];
    mad.lo.u32 %r11, %r10, 100, %r11;)" +
                           release("%rd3") + kStore;
  expect_always(kernel(body, kHeap), config_of(4, 64),
                [](uint32_t thread) { return thread * 100 + thread % 32; });
}

TEST(Heap, NothingIsNullAndNullIsFreed) {
  const std::string body = allocate("0", "%rd3") + allocate("1099511627776", "%rd4") + R"(
    or.b64 %rd5, %rd3, %rd4;
    setp.eq.u64 %p0, %rd5, 0;
    selp.u32 %r11, 1, 0, %p0;)" +
                           release("%rd3") + kStore;
  expect_always(kernel(body, kHeap), config_of(1, 32), [](uint32_t) { return 1; });
}

TEST(Heap, RunsOut) {
  // Blocks of 1 MiB each: 8 MiB are there, so that 8 of the 32 lanes get one.
  const std::string body = allocate("1048576", "%rd3") + R"(
    setp.ne.u64 %p0, %rd3, 0;
    vote.sync.ballot.b32 %r11, %p0, 0xFFFFFFFF;
    popc.b32 %r11, %r11;)" +
                           release("%rd3") + kStore;
  expect_always(kernel(body, kHeap), config_of(1, 32), [](uint32_t) { return 8; });
}

TEST(Heap, FaultsAreSeen) {
  const std::string block = allocate("12", "%rd3");
  const auto report = [&](FaultKind kind, const std::string& body) {
    return fault_of(kind, kernel(body, kHeap));
  };
  const std::string past = report(FaultKind::bounds, block + "st.u32 [%rd3+12], %r0;");
  EXPECT_TRUE(says(past, "a block of 12 bytes of the kernels' heap end 4 bytes past its end")) << past;
  const std::string late =
      report(FaultKind::use_after_free, block + release("%rd3") + "ld.u32 %r10, [%rd3];");
  EXPECT_TRUE(says(late, "which a kernel has freed")) << late;
  const std::string twice = report(FaultKind::use_after_free, block + release("%rd3") + release("%rd3"));
  EXPECT_TRUE(says(twice, "that was freed before")) << twice;
  const std::string middle = report(FaultKind::bounds, block + "add.u64 %rd3, %rd3, 4;" + release("%rd3"));
  EXPECT_TRUE(says(middle, "where no block of the kernels' heap begins")) << middle;
  const std::string foreign = report(FaultKind::bounds, block + release("%rd0"));
  EXPECT_TRUE(says(foreign, "cudaMalloc")) << foreign;
}

}  // namespace
