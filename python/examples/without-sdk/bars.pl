# Moving colour bars from the seed and the prompt: an engine in Perl, from docs/engine-protocol.md alone.
#
# Command: perl examples/without-sdk/bars.pl
use strict;
use warnings;
use Digest::MD5 qw(md5);
use IO::Handle;
use JSON::PP;

# Standard output belongs to the protocol: what prints from here on prints to the log.
open(my $output, '>&', \*STDOUT) && open(STDOUT, '>&', \*STDERR) or die "no standard output: $!";
binmode($_) for \*STDIN, $output;
$output->autoflush(1);
my $json = JSON::PP->new->utf8;

sub tell_kinora { my ($kind, $body) = @_; print {$output} pack('a V/a*', $kind, $body) }

sub read_bytes {
    my ($length, $bytes) = (shift, '');
    while (length $bytes < $length) {
        # At the end of the input: the process, and all that it started.
        sysread(STDIN, $bytes, $length - length $bytes, length $bytes) or kill 'KILL', -getpgrp();
    }
    return $bytes;
}

sub read_message { my ($kind, $length) = unpack('a V', read_bytes(5)); return ($kind, read_bytes($length)) }

# Reads what has arrived, without waiting. Messages of other kinds are skipped.
sub is_cancelled {
    vec(my $input = '', fileno(STDIN), 1) = 1;
    while (select(my $ready = $input, undef, undef, 0) > 0) {
        return 1 if (read_message())[0] eq 'c';
    }
}

sub make {
    my ($job) = @_;
    my ($width, $height, $frames) = @{ $job->{clip} }{qw(width height frames)};
    my @bars = map { substr(md5($json->encode([$job->{seed}, $job->{prompt}, $_])), 0, 3) } 0 .. 7;
    for my $number (0 .. $frames - 1) {
        return 'cancelled' if is_cancelled();
        my $row = join '', map { $bars[(8 * $_ / $width + $number / 4) % 8] } 0 .. $width - 1;
        tell_kinora('f', $row x $height);
        tell_kinora('p', pack('d<', ($number + 1) / $frames));
    }
    return 'done';
}

while (my ($kind, $body) = read_message()) {
    if ($kind eq 'o') {
        my %hello = (protocol => { major => 1, minor => 0 }, features => { text_to_video => JSON::PP::true });
        tell_kinora('h', $json->encode(\%hello));
        tell_kinora('o', '');
    }
    tell_kinora('e', $json->encode({ outcome => make($json->decode($body)) })) if $kind eq 'j';
}
