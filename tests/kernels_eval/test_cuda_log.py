"""What NVRTC prints becomes diagnostics at the candidate's lines."""

from kernels_eval.cpu import compile_log as gcc_log
from kernels_eval.cuda import compile_log

LOG = """\
kernel.cu(3): error: identifier "y" is undefined
    out[i] = y;
             ^

kernel.cu(5): warning #177-D: variable "k" was declared but never referenced

kernel.cu(3): error: identifier "y" is undefined
/cuda/include/a.h(81): error: incomplete type "at<0>" is not allowed
  struct at : at<I - 1> {};
              ^
          detected during:
            instantiation of class "at<1>" at line 81
            instantiation of type "p<2>" at line 6 of kernel.cu

/cuda/include/a.h(9): error: no such thing
          detected during instantiation of "q" at line 2 of launch

launch(6): error: static assertion failed with "KE_TYPE 0 2"
ptxas error   : Entry function '_Z1kPf' uses too much shared data

2 errors detected in the compilation of "kernel.cu".
"""


def test_a_log_is_sorted():
  messages = compile_log.read(LOG)
  assert isinstance(messages, gcc_log.Messages)
  assert [(d.line, d.message[:20]) for d in messages.diagnostics] == [
    (3, 'identifier "y" is un'),
    (6, 'incomplete type "at<'),
    (None, "Entry function '_Z1k"),
  ]
  assert [m.groups() for m in messages.markers] == [("TYPE", "0", "2")]
  assert messages.trailer_error == "no such thing"
