package daemon

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/tailwater/tailwater/config"
)

// tlsConfig reads the files of a sink's TLS settings; nil means the system's defaults.
func tlsConfig(t config.TLS, skipVerify bool) (*tls.Config, error) {
	if t.CA == "" && t.Cert == "" && t.ServerName == "" && !skipVerify {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName, InsecureSkipVerify: skipVerify}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("read tls.ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls.ca: %s holds no PEM certificate", t.CA)
		}
	}
	if t.Cert != "" {
		cert, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, fmt.Errorf("read tls.cert and tls.key: %w", err)
		}
		c.Certificates = []tls.Certificate{cert}
	}
	return c, nil
}
